"""A table as a pyarrow dataset, for engines that scan these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads

from lance_sql.engines.partitions import Partition, TableScanner, partitions
from lance_sql.engines.statement_run import Runs
from lance_sql.engines.table import EngineTable

if TYPE_CHECKING:
    import pyarrow.compute as pc


class PlainDataset(pads.Dataset):  # type: ignore[misc]
    """A dataset as an engine scans it, over `EngineTable.schema`."""

    def __init__(self, table: EngineTable, partitions: int | None = None, runs: Runs | None = None) -> None:
        # The base class is only an interface here: its constructor refuses subclasses, and every method that
        # engines call is below.
        self.table = table
        #: number of row ranges that are scanned in parallel; None: one per processor
        self.partitions = partitions
        #: the run that new scans belong to
        self.runs = runs or Runs()

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> TableScanner:
        """A scan of all rows. Other scan `options` of pyarrow, such as a batch size, have no effect."""
        names = self.table.schema.names if columns is None else list(columns)
        return TableScanner(self.table, names, filter, run=self.runs.current).begun()

    def get_fragments(self, filter: pc.Expression | None = None) -> list[Partition]:
        """The partitions of a scan. `filter` is applied by their scanners."""
        return partitions(self.table, self.partitions, self.runs.current)
