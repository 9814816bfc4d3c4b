"""The facade of the engine: one version of a dataset, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.expr import Node
from lance_engine.inspection import Inspector
from lance_engine.scan import Scanner, ScanSplit, take
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.splits import split_rows
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot

__all__ = ["Dataset", "ScanSplit"]


class Dataset:
    """One version of a dataset. Immutable; threads may share it, and sharing keeps decoded metadata warm."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._schema: pa.Schema | None = None
        self._readers: dict[int, FragmentReader] = {}

    @classmethod
    def open(
        cls, uri: str, version: int | None = None, *, storage_options: Mapping[str, Any] | None = None
    ) -> Dataset:
        """Open the dataset at `uri`, its latest version unless `version` names another.

        DatasetNotFoundError if there is none, VersionNotFoundError if it has no such version.
        """
        return cls(open_snapshot(uri, version, storage_options=storage_options))

    @property
    def uri(self) -> str:
        return self.snapshot.uri

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the data columns."""
        if self._schema is None:
            self._schema = self.snapshot.schema.to_arrow()
        return self._schema

    @property
    def inspect(self) -> Inspector:
        """What this version consists of, as Arrow tables: ``inspect.fragments()`` and so on."""
        return Inspector(self.snapshot)

    def count_rows(self, filter: str | pc.Expression | Node | None = None) -> int:
        """How many rows pass `filter`; without one, known from metadata."""
        if filter is None:
            return self.snapshot.num_rows
        return self.scan(columns=[], filter=filter).count()

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | Node | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        splits: Sequence[ScanSplit] | None = None,
    ) -> Scanner:
        """Describe a scan; nothing is read before a method of the result asks for rows.

        `columns` are names in the order wanted, ``_rowid`` and ``_rowaddr`` included; None means all data
        columns, and an empty list batches that only have a row count. `filter` is SQL text, a pyarrow
        expression or a filter tree, with the semantics of SQL. `batch_size` bounds the rows of a batch.
        `splits` restricts the scan to some ranges of physical rows, as `splits()` makes them.
        """
        return Scanner(
            self.snapshot,
            self._reader,
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            batch_size=batch_size,
            splits=splits,
        )

    def take(self, row_ids: npt.ArrayLike, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these ids, in this order, repeated if asked; RowNotFoundError lists unknown ids."""
        return take(self.snapshot, self._reader, row_ids, columns)

    def splits(self, count: int) -> list[ScanSplit]:
        """Up to about `count` ranges of rows of similar size that together are the dataset."""
        return split_rows(self.snapshot.fragments, count)

    def _reader(self, fragment_id: int) -> FragmentReader:
        found = self._readers.get(fragment_id)
        if found is None:
            reader = FragmentReader(self.snapshot, self.snapshot.fragment(fragment_id))
            found = self._readers.setdefault(fragment_id, reader)
        return found
