"""The inspections of one opened version, as methods."""

from __future__ import annotations

import pyarrow as pa

from lance_engine.inspection.history import versions
from lance_engine.inspection.indices import indices
from lance_engine.inspection.layout import files, fragments
from lance_engine.inspection.storage import columns, pages
from lance_engine.inspection.zones import zones
from lance_engine.table.snapshot import Snapshot


class Inspector:
    """What `ds.inspect` is: every method reads metadata only and answers with an Arrow table."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def versions(self) -> pa.Table:
        """One row per version of the dataset that still exists, oldest first."""
        return versions(self._snapshot.store)

    def fragments(self) -> pa.Table:
        """One row per fragment: rows, deleted rows, files, bytes."""
        return fragments(self._snapshot)

    def files(self) -> pa.Table:
        """One row per data file: path, format version, bytes, columns."""
        return files(self._snapshot)

    def columns(self) -> pa.Table:
        """One row per stored column: type, pages, bytes, encodings."""
        return columns(self._snapshot)

    def pages(self, column: str | None = None) -> pa.Table:
        """One row per page, of all columns or of one: rows, bytes, encoding."""
        return pages(self._snapshot, column)

    def zones(self, column: str | None = None) -> pa.Table:
        """One row per zone of the columns with zone maps, or of one: bounds and null count."""
        return zones(self._snapshot, column)

    def indices(self) -> pa.Table:
        """One row per index segment: kind, columns, coverage, bytes."""
        return indices(self._snapshot)
