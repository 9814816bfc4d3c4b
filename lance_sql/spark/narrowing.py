"""Column pruning and filter pushdown for one query: its plan is analyzed, then it gets its own readers.

Spark does not prune columns for Python data sources, and shares the reader that received filters among all
queries over a DataFrame. So the query is planned twice: the optimized plan shows which columns of each Lance
table it needs and which filters are directly above the table; then each table of the analyzed plan is
replaced by a reader for only that data.

The planner in the JVM (`lance_sql.spark.planner`) does this automatically: its tables are not changed.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from lance_engine.expr import Node, build
from lance_engine.scan import SYSTEM_FIELDS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lance_sql.spark.catalyst import to_filter
from lance_sql.spark.log import logger
from lance_sql.spark.options import Options
from lance_sql.spark.partitions import plan_splits
from lance_sql.spark.session import ensure_registered
from lance_sql.spark.source import FORMATS
from lance_sql.spark.versions import (
    COMPUTING,
    FILTER,
    PASSING,
    class_name,
    execution_of,
    frame_of,
    is_python_table,
    is_scan,
    projected,
    scala_items,
    with_children,
)


@dataclasses.dataclass
class _Use:
    """What the optimized plan needs from one table: attributes by id, and a filter for each use."""

    attributes: set[int] = dataclasses.field(default_factory=set)
    conditions: list[list[Any]] = dataclasses.field(default_factory=list)


def narrow(frame: DataFrame) -> DataFrame:
    """The same rows, from readers that only read the columns and row ranges that this query needs.

    Call it on the complete query, directly before its action. Operations on the result are not analyzed: it
    has all columns of `frame`. Returns `frame` itself if plans are not accessible (Spark Connect), if the
    planner in the JVM has already done this, or if the query has no Lance table.
    """
    execution = execution_of(frame)
    if execution is None:
        return frame
    analyzed = execution.analyzed()
    tables = [leaf for leaf in _leaves(analyzed) if _is_lance(leaf)]
    if not tables:
        return frame
    uses: dict[int, _Use] = {}
    optimized = execution.optimizedPlan()
    _visit(optimized, _ids(optimized.output()), uses)
    spark = frame.sparkSession
    ensure_registered(spark)
    replacements = {}
    for table in tables:
        first = min(_ids(table.output()), default=None)
        use = uses.get(first) if first is not None else None
        if use is not None and first is not None and first not in replacements:
            replacements[first] = _replacement(spark, table, use)
    if not replacements:
        return frame
    return frame_of(spark, _replaced(spark, analyzed, replacements))


def _visit(plan: Any, required: set[int], uses: dict[int, _Use], conditions: Iterable[Any] = ()) -> None:
    """Collect what this node and its children need, given the `required` attributes of the node."""
    name = class_name(plan)
    for subquery in scala_items(plan.subqueries()):
        _visit(subquery, _ids(subquery.output()), uses)
    if is_scan(plan):
        attributes = _ids(plan.relation().output())
        if attributes:
            use = uses.setdefault(min(attributes), _Use())
            use.attributes |= required & attributes
            use.conditions.append(list(conditions))
        return
    above = [*conditions, plan.condition()] if name == FILTER else []
    for child in scala_items(plan.children()):
        outputs = _ids(child.output())
        if name in COMPUTING:
            needed = _ids(plan.references()) & outputs
        elif name in PASSING:
            needed = (required | _ids(plan.references())) & outputs
        else:
            needed = outputs
        _visit(child, needed, uses, above)


def _replacement(spark: SparkSession, table: Any, use: _Use) -> Any:
    """A plan with the attributes of `table` that only reads what is needed; other attributes are null."""
    given = {str(key): str(value) for key, value in table.options().asCaseSensitiveMap().items()}
    options = Options.parse(given)
    dataset = options.open()
    pinned = options.at(dataset)
    schema = StructType.fromJson(json.loads(str(table.schema().json())))
    attributes = list(scala_items(table.output()))
    needed = [
        field
        for field, attribute in zip(schema.fields, attributes, strict=True)
        if attribute.exprId().id() in use.attributes
    ]
    if not needed:
        needed = [min(schema.fields, key=lambda field: _width(field.dataType))]
    arrow = dataset.storage_schema
    for field in SYSTEM_FIELDS.values():
        arrow = arrow.append(field)
    filter = _combined(use, arrow)
    for name in ("version", "tag", "as_of", "asof", "filter"):
        given = {key: value for key, value in given.items() if key.lower() != name}
    given["version"] = str(pinned.version)
    if pinned.branch is not None:
        given["branch"] = pinned.branch
    text = " AND ".join(f"({part})" for part in (options.filter, filter) if part is not None)
    if text:
        given["filter"] = text
    names = [field.name for field in needed]
    if logger.isEnabledFor(logging.INFO):  # Spark plans it again, in another process
        planned = plan_splits(dataset, dataclasses.replace(pinned, filter=text or None))
        where = text or "true"
        logger.info(
            "%s version %d: reads %s where %s: %s", dataset.uri, dataset.version, names, where, planned
        )
    frame = spark.read.format(str(table.table().name())).schema(StructType(needed)).options(**given).load()
    return projected(spark, attributes, execution_of(frame).analyzed())


def _combined(use: _Use, schema: pa.Schema) -> Node | None:
    """A filter that is true for all rows that any use of the table needs."""
    places: list[Node] = []
    for conditions in use.conditions:
        parts = [
            part for part in (to_filter(condition, schema) for condition in conditions) if part is not None
        ]
        if not parts:
            return None
        places.append(build.conjunction(parts))
    return build.disjunction(places) if places else None


def _replaced(spark: SparkSession, plan: Any, replacements: Mapping[int, Any]) -> Any:
    if _is_lance(plan):
        return replacements.get(min(_ids(plan.output())), plan)
    children = list(scala_items(plan.children()))
    if not children:
        return plan
    return with_children(spark, plan, [_replaced(spark, child, replacements) for child in children])


def _leaves(plan: Any) -> Iterable[Any]:
    children = list(scala_items(plan.children()))
    if not children:
        yield plan
    for child in children:
        yield from _leaves(child)


def _is_lance(plan: Any) -> bool:
    """Whether Spark plans this Lance table as a Python data source, without the planner in the JVM."""
    return is_python_table(plan) and str(plan.table().name()) in FORMATS


def _ids(attributes: Any) -> set[int]:
    return {attribute.exprId().id() for attribute in scala_items(attributes)}


def _width(kind: DataType) -> int:
    """The approximate size of a value in bytes, to find the cheapest column for counting rows."""
    if isinstance(kind, (StructType, ArrayType, MapType)):
        return 1000
    return _WIDTHS.get(kind.typeName(), 8)


_WIDTHS: Final = {
    "boolean": 1,
    "byte": 1,
    "short": 2,
    "integer": 4,
    "date": 4,
    "float": 4,
    "string": 32,
    "binary": 64,
}
