"""The inspections of one opened version, as methods; each is imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_engine.legible import legible_line, without_secrets
from lance_engine.public import Public

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot


class Inspector(Public):
    """The class of `ds.inspect`: every method returns an Arrow table and, by default, reads metadata only."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        tables = ", ".join(f"{name}()" for name in dir(self) if not name.startswith("_"))
        uri, version = without_secrets(self._snapshot.uri), self._snapshot.version
        return legible_line(f"<Inspector of {uri} version {version}: {tables}>")

    def versions(self, last: int | None = None) -> pa.Table:
        """One row per version of the dataset that still exists, or for the `last` ones, oldest first."""
        from lance_engine.inspection.history import versions

        return versions(self._snapshot.store, last=last)

    def transactions(self) -> pa.Table:
        """One row per version that still exists: what it changed, and from which version."""
        from lance_engine.inspection.transactions import transactions

        return transactions(self._snapshot.store)

    def refs(self) -> pa.Table:
        """One row per tag: the version that it names."""
        from lance_engine.inspection.refs import refs
        from lance_engine.table.refs import root_store

        return refs(root_store(self._snapshot))

    def fragments(self) -> pa.Table:
        """One row per fragment: rows, deleted rows, files, bytes."""
        from lance_engine.inspection.layout import fragments

        return fragments(self._snapshot)

    def files(self) -> pa.Table:
        """One row per data file: path, format version, bytes, columns."""
        from lance_engine.inspection.layout import files

        return files(self._snapshot)

    def deletions(self) -> pa.Table:
        """One row per deletion file: fragment, kind, rows, bytes."""
        from lance_engine.inspection.layout import deletions

        return deletions(self._snapshot)

    def columns(self) -> pa.Table:
        """One row per stored column: type, pages, bytes, encodings."""
        from lance_engine.inspection.storage import columns

        return columns(self._snapshot)

    def pages(self, column: str | None = None) -> pa.Table:
        """One row per page, of all columns or of one: rows, bytes, encoding."""
        from lance_engine.inspection.storage import pages

        return pages(self._snapshot, column)

    def statistics(self) -> pa.Table:
        """One row per stored column: bounds and nulls by its zone maps, and how well it is compressed."""
        from lance_engine.inspection.statistics import statistics

        return statistics(self._snapshot)

    def zones(self, column: str | None = None) -> pa.Table:
        """One row per zone of the columns with zone maps, or of one: bounds and null count."""
        from lance_engine.inspection.zones import zones

        return zones(self._snapshot, column)

    def indices(self) -> pa.Table:
        """One row per index segment: kind, columns, coverage, bytes."""
        from lance_engine.inspection.indices import indices

        return indices(self._snapshot)

    def constraints(self) -> pa.Table:
        """One row per key, CHECK condition and NOT NULL column; `enforced` if our writers check it."""
        from lance_engine.inspection.constraints import constraints

        return constraints(self._snapshot)

    def index_health(self) -> pa.Table:
        """One row per index: the rows that it covers and does not cover, its stale segments, what to do."""
        from lance_engine.inspection.index_health import index_health

        return index_health(self._snapshot)

    def config(self) -> pa.Table:
        """One row per key of the table's configuration."""
        from lance_engine.inspection.metadata import entries

        return entries(self._snapshot.manifest.config)

    def table_metadata(self) -> pa.Table:
        """One row per key of the table's metadata."""
        from lance_engine.inspection.metadata import entries

        return entries(self._snapshot.manifest.table_metadata)

    def schema_metadata(self) -> pa.Table:
        """One row per key of the metadata of the Arrow schema."""
        from lance_engine.inspection.metadata import entries

        return entries(self._snapshot.schema.metadata)

    def column_metadata(self) -> pa.Table:
        """One row per column and key of its metadata."""
        from lance_engine.inspection.metadata import column_metadata

        return column_metadata(self._snapshot)

    def verify(self, *, values: bool = False) -> pa.Table:
        """One row per problem of this version, none if it is sound; `values` also decodes every value."""
        from lance_engine.inspection.verify import verify

        return verify(self._snapshot, values=values)

    def health(self) -> pa.Table:
        """One row per measure of upkeep, such as small fragments, with the command that fixes it."""
        from lance_engine.inspection.health import health

        return health(self._snapshot)
