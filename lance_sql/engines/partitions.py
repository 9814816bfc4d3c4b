"""A table divided into row ranges that engine threads scan in parallel, as pyarrow dataset fragments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from lance_engine.errors import LanceError

from lance_sql.engines.exit_guard import guarded, visit
from lance_sql.engines.statement_run import StatementRun
from lance_sql.engines.table import EngineTable

if TYPE_CHECKING:
    import pandas as pd
    from lance_engine.scan import ScanSplit

    from lance_sql.engines.table_scan import TableScan

_PROCESSORS = os.cpu_count() or 1
#: Minimum number of rows for an additional partition to be worthwhile.
_ROWS_PER_PARTITION = 1 << 16
#: Bytes that fit into a processor's cache while an engine computes with them, and rows that justify a call.
_CACHED_BYTES = 1 << 19
_LEAST_ROWS = 1 << 13


def partitions(
    table: EngineTable, count: int | None = None, run: StatementRun | None = None
) -> list[Partition]:
    """About `count` row ranges of `table`, by default one per processor; at least one, few for small tables.

    Their scans belong to `run`.
    """
    if run is not None and table.name in run.ranges:
        return [Partition(table, None, run, helped=True)]  # skips and counts rows of the whole table
    wanted = min(count or _PROCESSORS, -(-table.num_rows // _ROWS_PER_PARTITION))
    groups = _groups(table.dataset.splits(max(wanted, 1)), wanted)
    # Threads of an engine need no help if there is one for each processor. In a join they do: one would
    # decode a partition to its end before another could begin with the next.
    helped = run is None or not run.has_one_scan or (count or _PROCESSORS) < _PROCESSORS
    # A table without rows still needs a partition: a plan without partitions has no schema.
    return [Partition(table, group, run, helped) for group in groups or [[]]]


def _groups(splits: Sequence[ScanSplit], count: int) -> list[list[ScanSplit]]:
    """Merge neighbouring `splits` into at most about `count` groups of similar size."""
    rows = sum(split.stop - split.start for split in splits)
    groups: list[list[ScanSplit]] = []
    begin = 0
    for split in splits:
        # by the middle of the split, so that rounding does not create a group for the remainder
        place = (begin + (split.stop - split.start) // 2) * count // max(rows, 1)
        if place >= len(groups):
            groups.append([])
        groups[-1].append(split)
        begin += split.stop - split.start
    return groups


class Partition:
    """A row range of a table, as a pyarrow dataset fragment.

    Local files are decoded on the thread that takes the batches, unless other threads should help it.
    """

    def __init__(
        self,
        table: EngineTable,
        splits: Sequence[ScanSplit] | None,
        run: StatementRun | None = None,
        helped: bool = False,
    ) -> None:
        self.table = table
        self.splits = splits
        self._run = run
        self._helped = helped

    @property
    def physical_schema(self) -> pa.Schema:
        return self.table.schema

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **options: Any,
    ) -> TableScanner:
        """A scan of this range. Other scan `options` of pyarrow, such as a batch size, have no effect."""
        with visit():
            made = TableScanner(self.table, columns, filter, self.splits, run=self._run, cut=True)
            try:
                if not self._helped:
                    made.decode_here()
                return made.begun()
            except LanceError as error:  # engines only pass on its text
                if self._run is not None:
                    self._run.failed(error)
                raise


def within_cache(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of `batches`, cut into batches that fit into a processor's cache.

    Batches with nested columns are not cut: engines are known to fail on slices of these.
    """
    for batch in batches:
        rows = batch.num_rows
        most = max(_LEAST_ROWS, _CACHED_BYTES * rows // max(batch.nbytes, 1)) if rows > _LEAST_ROWS else rows
        if rows <= most or any(map(pa.types.is_nested, batch.schema.types)):
            yield batch
        else:
            yield from (batch.slice(begin, most) for begin in range(0, rows, most))


def as_expression(filter: Any) -> Any:
    """A filter as an expression: DataFusion 53 passes a scalar for filters that it evaluated in planning."""
    if isinstance(filter, pa.BooleanScalar):
        return None if filter.as_py() else pc.scalar(False)
    return filter


class TableScanner:
    """A scan as a pyarrow scanner: all rows of the table, or those of `splits`.

    It is planned when it is first used: some engines only ask for its schema. Its batches are `cut` for
    engines that process one at a time.
    """

    def __init__(
        self,
        table: EngineTable,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | str | None = None,
        splits: Sequence[ScanSplit] | None = None,
        batch_size: int | None = None,
        run: StatementRun | None = None,
        cut: bool = False,
    ) -> None:
        self._cut = cut
        names = table.schema.names if columns is None else list(columns)
        self._begin = partial(
            table.scan, names, as_expression(filter), run=run, splits=splits, batch_size=batch_size
        )
        self.dataset_schema: pa.Schema = table.schema
        self.projected_schema: pa.Schema = pa.schema([table.schema.field(name) for name in names])

    @cached_property
    def _scan(self) -> TableScan:
        return self._begin()

    def begun(self) -> TableScanner:
        """The scanner, whose scan is planned."""
        _ = self._scan
        return self

    def decode_here(self) -> None:
        """Decode on the thread that takes the batches; see `Scanner.decode_here`."""
        self._scan.scanner.decode_here()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The batches; safe on threads that Python did not start. Without columns, row counts are kept."""
        return guarded(lambda: within_cache(self._scan.batches()) if self._cut else self._scan.batches())

    def to_table(self) -> pa.Table:
        return self._scan.stream().table()

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; pandas must be installed."""
        return self.to_table().to_pandas()

    def to_reader(self) -> pa.RecordBatchReader:
        return self._scan.stream().reader()

    def count_rows(self) -> int:
        return self._scan.count()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)
