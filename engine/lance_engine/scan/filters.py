"""The filters of scans as users write them: SQL text, pyarrow expressions or trees."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lance_engine.errors import InvalidFilterError
from lance_engine.expr.tree import Node
from lance_engine.lru_cache import LruCache
from lance_engine.scan.system import SYSTEM_FIELDS
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from lance_engine.schema_tree import Schema
    from lance_engine.table.snapshot import Snapshot

#: Number of parsed filters that are kept for each schema, which versions usually share.
_CACHED_FILTERS: Final = 64
_parsed: WeakIdentityDict[Schema, LruCache[str, Node]] = WeakIdentityDict()


def parse_filter(filter: str | pc.Expression | Node | None, snapshot: Snapshot) -> Node | None:
    """The filter tree for any kind of filter over the columns of a snapshot and the system columns."""
    if filter is None:
        return None
    if isinstance(filter, Node):
        return filter
    if isinstance(filter, str):
        kept = _parsed.computed(snapshot.schema, partial(LruCache, _CACHED_FILTERS))
        return kept.computed(filter, partial(_parsed_sql, filter, snapshot))
    # Takes long to import.
    import pyarrow.compute as pc

    from lance_engine.expr.from_arrow import from_arrow

    if not isinstance(filter, pc.Expression):
        raise InvalidFilterError(
            f"A filter is SQL text or a pyarrow expression, not {filter!r}",
            remedy='Write a condition as in WHERE, for example filter="price > 10"',
        )
    return from_arrow(filter, _schema(snapshot))


def _parsed_sql(text: str, snapshot: Snapshot) -> Node:
    from lance_engine.expr.from_sql import parse_sql
    from lance_engine.expr.operations import with_official_casts
    from lance_engine.expr.total_order import in_total_order

    return in_total_order(with_official_casts(parse_sql(text, _schema(snapshot), official=True)))


def _schema(snapshot: Snapshot) -> pa.Schema:
    """The columns to which filters may refer."""
    schema = snapshot.schema.to_arrow()
    for field in SYSTEM_FIELDS.values():
        schema = schema.append(field)
    return schema
