"""Statements whose scans exchange the keys of a join; see `lance_sql.engines.join_keys`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.types as at
from lance_engine.recent import Recent
from lance_engine.scan.width import estimated_row_bytes

from lance_sql.engines.join_keys import JoinKeys
from lance_sql.engines.key_conditions import KeyConditions
from lance_sql.pushdown.wrapped_query import WrappedQuery
from lance_sql.text.joins import KeyPath, key_paths

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import Query
    from lance_sql.engines.capabilities import Capabilities
    from lance_sql.engines.statement_run import StatementRun

#: Smaller tables are read completely in the time that testing keys takes.
_SMALL_BYTES = 8 << 20
#: A table gives keys to tables with at least this many times its rows.
_LARGER = 2
#: Number of texts whose joins are kept.
_KEPT_TEXTS = 8


class JoinedQuery(WrappedQuery):
    """`query`, whose scans exchange keys; `begin` creates the keys of a run."""

    def __init__(self, query: Query, begin: Callable[[], JoinKeys]) -> None:
        super().__init__(query)
        self._begin = begin

    def prepare(self, run: StatementRun) -> None:
        run.join_keys = self._begin()


class _Joins(NamedTuple):
    """The joins of a text over some datasets; `useful` paths are those that may pay."""

    datasets: Mapping[str, weakref.ref[DatasetVersion]]
    useful: Sequence[KeyPath]
    #: those of them that only pay if the table that gives keys is read ahead
    ahead: frozenset[KeyPath]
    #: how often the text names each table
    places: Mapping[str, int]
    rows: dict[str, int]
    conditions: KeyConditions

    def are_of(self, datasets: Mapping[str, DatasetVersion]) -> bool:
        return self.datasets.keys() == datasets.keys() and all(
            known() is datasets[name] for name, known in self.datasets.items()
        )


class JoinFilters:
    """Finds joins in the statements of a session; what it finds is kept for statements that run again.

    `capabilities` are those of the engine.
    """

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities
        #: by text, and whether tables may be of any size
        self._known: Recent[tuple[str, bool], _Joins] = Recent(_KEPT_TEXTS)

    def keys(
        self,
        text: str,
        datasets: Mapping[str, DatasetVersion],
        scans: Callable[[], Mapping[str, int]],
        force: bool = False,
    ) -> Callable[[], JoinKeys] | None:
        """Creates the keys of a run of a statement, called for each run; None if no scan gives any.

        `datasets` are those that the text names. `scans` is only called for queries: it returns how often the
        engine scans each of them, which is more often than the text names it if a view does so too.
        """
        joins = self._known.get((text, force))
        if joins is None or not joins.are_of(datasets):
            joins = self._known[text, force] = _joins(
                text, datasets, self._capabilities.reads_tables_ahead, force
            )
        if not joins.useful:
            return None
        known = scans()
        if any(known.get(name) != places for name, places in joins.places.items()):
            return None
        filters_joins = self._capabilities.filters_joins
        return partial(JoinKeys, joins.useful, joins.rows, filters_joins, joins.conditions, joins.ahead)


def _joins(text: str, datasets: Mapping[str, DatasetVersion], reads_ahead: bool, force: bool) -> _Joins:
    references = {name: weakref.ref(dataset) for name, dataset in datasets.items()}
    none = _Joins(references, (), frozenset(), {}, {}, KeyConditions())
    if not force and all(map(_is_small, datasets.values())):
        return none
    columns = {name: tuple(dataset.storage_schema.names) for name, dataset in datasets.items()}
    if len({name.lower() for name in columns}) < len(columns):
        return none
    paths, places = _paths(text, tuple(columns.items()))
    paths = [path for path in paths if _has_keys(path, datasets)]
    useful = [path for path in paths if places[path.giver] == 1 and (force or _is_useful(path, datasets))]
    ahead = frozenset[KeyPath]()
    if reads_ahead:
        ahead = frozenset(paths if force else _useful_ahead(paths, datasets)).difference(useful)
        useful = [path for path in paths if path in useful or path in ahead]
    rows = {
        name: sum(fragment.physical_rows for fragment in dataset.snapshot.fragments)
        for name, dataset in datasets.items()
        if useful
    }
    return none._replace(useful=useful, ahead=ahead, places=places, rows=rows)


@lru_cache(maxsize=64)
def _paths(
    text: str, tables: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[list[KeyPath], dict[str, int]]:
    return key_paths(text, dict(tables))


def _is_small(dataset: DatasetVersion) -> bool:
    return dataset.count_rows() * estimated_row_bytes(dataset.storage_schema) < _SMALL_BYTES


def _has_keys(path: KeyPath, datasets: Mapping[str, DatasetVersion]) -> bool:
    """Whether both columns have types whose values can be compared as keys."""
    kinds = (
        datasets[path.giver].storage_schema.field(path.key).type,
        datasets[path.receiver].storage_schema.field(path.column).type,
    )
    numbers = all(at.is_integer(kind) and not at.is_uint64(kind) for kind in kinds)
    return numbers or all(map(at.is_date32, kinds))


def _is_useful(path: KeyPath, datasets: Mapping[str, DatasetVersion]) -> bool:
    return _is_larger(path, datasets) and not _is_small(datasets[path.receiver])


def _is_larger(path: KeyPath, datasets: Mapping[str, DatasetVersion]) -> bool:
    return datasets[path.giver].count_rows() * _LARGER <= datasets[path.receiver].count_rows()


def _useful_ahead(paths: Sequence[KeyPath], datasets: Mapping[str, DatasetVersion]) -> Iterator[KeyPath]:
    """The paths that may pay if the tables that give keys are read ahead, and few of their rows.

    Small tables test keys as well if they give keys to large ones.
    """
    large = {path for path in paths if not _is_small(datasets[path.receiver])}
    givers = {path.giver for path in large}
    for path in paths:
        if path in large or (path.receiver in givers and _is_larger(path, datasets)):
            yield path
