"""The filter of a read: the option ``filter`` and filters that the planner in the JVM pushed down.

The planner passes its filters as JSON, which PushedFilter.java writes.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from lance_engine.errors import InvalidFilterError, LanceError
from lance_engine.expr import Node, SparkFilter, build, spark_filter
from lance_engine.scan import SYSTEM_FIELDS, parse_filter
from lance_engine.table import Snapshot

from lance_sql.spark.facts import is_exact
from lance_sql.spark.options import Options
from lance_sql.spark.versions import EXCLUDED_RULES, PASSES_FILTERS

_EPOCH: Final = datetime.datetime(1970, 1, 1)


def row_filter(options: Options, snapshot: Snapshot) -> Node | None:
    """The condition for the rows of a read; None if all rows are read. An invalid filter is an error."""
    conditions = [parse_filter(options.filter, snapshot)]
    if options.pushed_filters is not None:
        schema = snapshot.schema.to_arrow()
        for field in SYSTEM_FIELDS.values():
            schema = schema.append(field)
        conditions += _pushed(options.pushed_filters, schema)
    given = [condition for condition in conditions if condition is not None]
    return build.conjunction(given) if given else None


def _pushed(text: str, schema: pa.Schema) -> list[Node]:
    """The filters in the JSON text that can be applied here.

    A filter that Spark relies on, because all of its columns are exact, must be applied: InvalidFilterError
    if it cannot. Spark tests all other filters again.
    """
    conditions = []
    for filter in json.loads(text):
        try:
            conditions.append(_tree(filter, schema))
        except (LanceError, pa.ArrowException) as error:
            if all(is_exact(schema.field(name).type) for name in _columns(filter)):
                raise InvalidFilterError(
                    f"The filter that Spark pushed down is not supported: {filter}",
                    remedy="Please report it. This avoids it: "
                    f"spark.conf.set('{EXCLUDED_RULES}', '{PASSES_FILTERS}')",
                ) from error
    return conditions


def _tree(filter: Mapping[str, Any], schema: pa.Schema) -> Node:
    kind = filter["kind"]
    if kind in ("And", "Or"):
        sides = [_tree(filter["left"], schema), _tree(filter["right"], schema)]
        return build.conjunction(sides) if kind == "And" else build.disjunction(sides)
    if kind == "Not":
        return build.negate(_tree(filter["child"], schema))
    value = filter["value"]
    if kind == "In":
        held: object = tuple(_value(item) for item in value)
    else:
        held = _value(value) if value else None
    return spark_filter(SparkFilter(kind, tuple(filter["column"]), held), schema)


def _columns(filter: Mapping[str, Any]) -> set[str]:
    if "column" in filter:
        return {filter["column"][0]}
    return {name for side in ("left", "right", "child") if side in filter for name in _columns(filter[side])}


def _value(typed: list[str]) -> object:
    kind, text = typed
    return _PARSERS[kind](text)


def _moment(text: str) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=int(text))


_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "null": lambda text: None,
    "boolean": lambda text: text == "true",
    "integer": int,
    "float": float,
    "decimal": Decimal,
    "string": str,
    "binary": base64.b64decode,
    "date": lambda days: _EPOCH.date() + datetime.timedelta(days=int(days)),
    "timestamp": lambda text: _moment(text).replace(tzinfo=datetime.UTC),
    "timestamp_ntz": _moment,
}
