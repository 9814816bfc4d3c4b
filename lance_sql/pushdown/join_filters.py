"""Statements whose scans exchange the keys of a join; see `lance_sql.engines.join_keys`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.types as at
from lance_engine.scan import estimated_row_bytes

from lance_sql.pushdown.rule import Asked
from lance_sql.pushdown.wrapped_query import WrappedQuery

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import Engine, Query
    from lance_sql.engines.join_keys import JoinKeys
    from lance_sql.engines.key_conditions import KeyConditions, KeyPath
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.syntax.scopes import BoundQuery

#: Smaller tables are read completely in the time that testing keys takes.
_SMALL_BYTES = 8 << 20
#: Keys are passed to tables with at least this many times the rows of the build table.
_LARGER = 2


class JoinedQuery(WrappedQuery):
    """`query`, whose scans exchange keys; `begin` creates the keys of a run."""

    def __init__(self, query: Query, begin: Callable[[], JoinKeys]) -> None:
        super().__init__(query)
        self._begin = begin

    def prepare(self, run: StatementRun) -> None:
        run.join_keys = self._begin()


class _Joins(NamedTuple):
    """The joins of a text over some datasets; `useful` paths are those that may pay."""

    useful: Sequence[KeyPath]
    #: those of them that only pay if the build table is read ahead
    ahead: frozenset[KeyPath]
    #: how often the text names each table
    places: Mapping[str, int]
    rows: dict[str, int]
    conditions: KeyConditions


class JoinFilters:
    """The rule."""

    name = "join_filters"
    words = ()

    def hindrance(self, engine: Engine) -> str:
        return ""

    def applied(self, asked: Asked, query: Query | None = None) -> Query | None:
        begin = self.keys(asked)
        return None if begin is None else JoinedQuery(query or asked.planned(), begin)

    def described(self, asked: Asked) -> str | None:
        return None  # the keys of a run say so

    def keys(self, asked: Asked) -> Callable[[], JoinKeys] | None:
        """Creates the keys of a run of a statement, called for each run; None if no scan gives any."""
        datasets = asked.plan.datasets
        if len(datasets) < 2 or not (asked.force or any(not _is_small(table) for table in datasets.values())):
            return None
        query = asked.bound(self)
        if query is None:
            return None
        capabilities = asked.engine.capabilities
        joins = asked.plan.fact(
            self.name, lambda: _joins(query, datasets, capabilities.reads_tables_ahead, asked.force)
        )
        if joins is None:
            return None
        # A view may scan them more often than the text names them.
        scans = asked.planned().scans
        if any(scans.get(name) != places for name, places in joins.places.items()):
            return None
        from lance_sql.engines.join_keys import JoinKeys

        filters_joins = capabilities.filters_joins
        return partial(JoinKeys, joins.useful, joins.rows, filters_joins, joins.conditions, joins.ahead)


def _joins(
    query: BoundQuery, datasets: Mapping[str, DatasetVersion], reads_ahead: bool, force: bool
) -> _Joins | None:
    from lance_sql.engines.key_conditions import KeyConditions
    from lance_sql.pushdown.join_paths import key_paths

    places = query.counts or {}
    paths = [path for path in key_paths(query) if _has_keys(path, datasets)]
    useful = [path for path in paths if places[path.build] == 1 and (force or _is_useful(path, datasets))]
    ahead: frozenset[KeyPath] = frozenset()
    if reads_ahead:
        ahead = frozenset(paths if force else _useful_ahead(paths, datasets)).difference(useful)
        useful = [path for path in paths if path in useful or path in ahead]
    if not useful:
        return None
    rows = {
        name: sum(fragment.physical_rows for fragment in dataset.snapshot.fragments)
        for name, dataset in datasets.items()
    }
    return _Joins(useful, ahead, places, rows, KeyConditions())


def _is_small(dataset: DatasetVersion) -> bool:
    return dataset.count_rows() * estimated_row_bytes(dataset.storage_schema) < _SMALL_BYTES


def _has_keys(path: KeyPath, datasets: Mapping[str, DatasetVersion]) -> bool:
    """Whether both columns have types whose values can be compared as keys."""
    kinds = (
        datasets[path.build].storage_schema.field(path.key).type,
        datasets[path.probe].storage_schema.field(path.column).type,
    )
    numbers = all(at.is_integer(kind) and not at.is_uint64(kind) for kind in kinds)
    return numbers or all(map(at.is_date32, kinds))


def _is_useful(path: KeyPath, datasets: Mapping[str, DatasetVersion]) -> bool:
    return _is_larger(path, datasets) and not _is_small(datasets[path.probe])


def _is_larger(path: KeyPath, datasets: Mapping[str, DatasetVersion]) -> bool:
    return datasets[path.build].count_rows() * _LARGER <= datasets[path.probe].count_rows()


def _useful_ahead(paths: Sequence[KeyPath], datasets: Mapping[str, DatasetVersion]) -> Iterator[KeyPath]:
    """The paths that may pay if the build tables are read ahead, and few of their rows.

    Small tables test keys as well if large ones test theirs.
    """
    large = {path for path in paths if not _is_small(datasets[path.probe])}
    build_tables = {path.build for path in large}
    for path in paths:
        if path in large or (path.probe in build_tables and _is_larger(path, datasets)):
            yield path
