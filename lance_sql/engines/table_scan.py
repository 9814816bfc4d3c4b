"""A scan of a table as engines see it: in the declared types, for one run of a statement."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from lance_engine.base import with_types
from lance_engine.scan import Convert, ScanStream

if TYPE_CHECKING:
    from lance_engine.scan import Scanner, ScanSplit

    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.engines.table import EngineTable


class TableScan:
    """A scan of a table in the declared types; its errors are reported to `run`."""

    def __init__(
        self,
        table: EngineTable,
        scanner: Scanner,
        splits: Sequence[ScanSplit] | None = None,
    ) -> None:
        self.scanner = scanner
        self._name = table.name
        self._splits = splits
        self._run: StatementRun | None = None
        self.schema = pa.schema([table.schema.field(name) for name in scanner.schema.names])
        self._cast = not table.converted.isdisjoint(self.schema.names)
        self._narrowed = table.narrowed.intersection(self.schema.names)

    def again(self) -> TableScan:
        """The same scan with metrics of its own, for another run."""
        from lance_engine.scan import repeated

        scan = copy.copy(self)
        scan.scanner = repeated(self.scanner)
        return scan

    def begin(self, run: StatementRun) -> None:
        """The scan belongs to `run`."""
        self._run = run
        run.began(self._name, self.scanner)

    def stream(self) -> ScanStream:
        """The rows; each call reads them again."""
        schema, run = self.schema, self._run
        convert: Convert | None = (lambda batch: with_types(batch, schema)) if self._cast else None
        failed = None if run is None else run.failed
        keys = None if run is None or run.join_keys is None else run.join_keys
        collector = None if keys is None else keys.collector(self._name, self.scanner, self._splits)
        narrowed = () if self._cast else self._narrowed
        if collector is not None:
            from lance_sql.engines.join_keys import CollectingStream

            return CollectingStream(collector, self.scanner, schema, convert, failed, narrowed)
        return ScanStream(self.scanner, schema, convert, failed, narrowed)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, until the run is cancelled."""
        for batch in self.stream().batches():
            if self._run is not None:
                self._run.check()
            yield batch

    def count(self) -> int:
        return self.scanner.count()
