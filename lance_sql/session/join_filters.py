"""Statements whose scans exchange the keys of a join; see `lance_sql.engines.join_keys`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow.types as at
from lance_engine.scan.width import estimated_row_bytes

from lance_sql.engines.join_keys import JoinKeys
from lance_sql.session.wrapped_query import WrappedQuery
from lance_sql.text.joins import KeyPath, key_paths

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import Query
    from lance_sql.engines.statement_run import StatementRun

#: Smaller tables are read completely in the time that testing keys takes.
_SMALL_BYTES = 8 << 20
#: A table gives keys to tables with at least this many times its rows.
_LARGER = 2


class JoinedQuery(WrappedQuery):
    """`query`, whose scans exchange keys; `begin` creates the keys of a run."""

    def __init__(self, query: Query, begin: Callable[[], JoinKeys]) -> None:
        super().__init__(query)
        self._begin = begin

    def prepare(self, run: StatementRun) -> None:
        run.join_keys = self._begin()


def join_keys(
    text: str,
    datasets: Mapping[str, DatasetVersion],
    scans: Callable[[], Mapping[str, int]],
    filters_joins: bool,
) -> Callable[[], JoinKeys] | None:
    """Creates the keys of a run of a statement, called for each run; None if no scan gives any.

    `datasets` are those that the text names. `scans` is only called for queries: it returns how often the
    engine scans each of them, which is more often than the text names it if a view does so too.
    `filters_joins` is a capability of the engine.
    """
    if len(datasets) < 2 or all(map(_is_small, datasets.values())):
        return None
    columns = {name: tuple(dataset.storage_schema.names) for name, dataset in datasets.items()}
    if len({name.lower() for name in columns}) < len(columns):
        return None
    paths, places = _paths(text, tuple(columns.items()))
    useful = [path for path in paths if _is_useful(path, datasets)]
    if not useful:
        return None
    known = scans()
    if any(known.get(name) != places[name] for name in places):
        return None
    rows = {
        name: sum(fragment.physical_rows for fragment in dataset.snapshot.fragments)
        for name, dataset in datasets.items()
    }
    return lambda: JoinKeys(useful, rows, filters_joins)


@lru_cache(maxsize=64)
def _paths(
    text: str, tables: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[list[KeyPath], dict[str, int]]:
    return key_paths(text, dict(tables))


def _is_small(dataset: DatasetVersion) -> bool:
    return dataset.count_rows() * estimated_row_bytes(dataset.storage_schema) < _SMALL_BYTES


def _is_useful(path: KeyPath, datasets: Mapping[str, DatasetVersion]) -> bool:
    receiver = datasets[path.receiver]
    kinds = (
        datasets[path.giver].storage_schema.field(path.key).type,
        receiver.storage_schema.field(path.column).type,
    )
    numbers = all(at.is_integer(kind) and not at.is_uint64(kind) for kind in kinds)
    if not numbers and not all(map(at.is_date32, kinds)):
        return False
    rows = datasets[path.giver].count_rows()
    return rows * _LARGER <= receiver.count_rows() and not _is_small(receiver)
