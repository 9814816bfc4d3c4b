"""A table cut into row ranges that engine threads scan side by side, in the shape of pyarrow dataset
fragments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_sql.engines.exit_guard import guarded, visit
from lance_sql.engines.table import EngineTable

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from lance_engine.dataset import ScanSplit

#: Rows below which a further partition costs more than it brings.
_ROWS_PER_PARTITION = 1 << 16


def partitions(table: EngineTable) -> list[Partition]:
    """Row ranges of `table`, about one per processor, fewer for small tables; at least one."""
    wanted = min(os.cpu_count() or 1, -(-table.num_rows // _ROWS_PER_PARTITION))
    splits = table.dataset.splits(max(wanted, 1))
    # A table without rows still needs a partition: a plan without any has no schema to run with.
    return [Partition(table, [split]) for split in splits] or [Partition(table, [])]


class Partition:
    """A row range of a table, in the shape of a pyarrow dataset fragment."""

    def __init__(self, table: EngineTable, splits: Sequence[ScanSplit]) -> None:
        self.table = table
        self.splits = splits

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
            return TableScanner(self.table, columns, filter, self.splits)


class TableScanner:
    """A scan in the shape of a pyarrow scanner: all rows of the table, or those of `splits`."""

    def __init__(
        self,
        table: EngineTable,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | str | None = None,
        splits: Sequence[ScanSplit] | None = None,
        batch_size: int | None = None,
    ) -> None:
        self._table = table
        self._scanner = table.scan(columns, filter, splits=splits, batch_size=batch_size)
        self.dataset_schema: pa.Schema = table.schema
        self.projected_schema: pa.Schema = self._scanner.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The batches; safe on threads that Python did not start. Zero columns keep their row count."""
        return guarded(lambda: self._table.batches(self._scanner))

    def to_table(self) -> pa.Table:
        return self._scanner.to_table()

    def to_reader(self) -> pa.RecordBatchReader:
        return self._scanner.to_reader()

    def count_rows(self) -> int:
        return self._scanner.count()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)
