"""Writes the files of a new segment of an index."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from pyroaring import BitMap

from lance_engine.format.index_section import IndexSegment
from lance_engine.io.store import Sink, Store, delete_quietly
from lance_engine.progress import Reporter
from lance_engine.schema_tree import Schema
from lance_engine.table.features import check_writable
from lance_engine.table.snapshot import INDICES, Snapshot
from lance_engine.tasks import Pool
from lance_engine.write.data_file import DataFileWriter
from lance_engine.write.options import WriteOptions

# Small pages with a fast encoding, because searches read few rows at scattered positions.
_OPTIONS: Final = WriteOptions(zone_maps=False, profile="speed", page_bytes=1 << 20)


class IndexFolder:
    """The folder of a new segment: `files` has the names and sizes of completed files."""

    def __init__(self, store: Store, pool: Pool, reporter: Reporter) -> None:
        self.uuid = uuid.uuid4()
        self.files: list[tuple[str, int]] = []
        self._store = store
        self._pool = pool
        self._reporter = reporter
        self._open: list[Sink] = []

    def paths(self) -> list[str]:
        """The paths of all complete files."""
        return [f"{INDICES}/{self.uuid}/{name}" for name, _ in self.files]

    def create(self, name: str, schema: pa.Schema) -> _IndexFile:
        """Start a file."""
        sink = self._store.create(f"{INDICES}/{self.uuid}/{name}")
        self._open.append(sink)
        return _IndexFile(self, sink, name, Schema.from_arrow(schema), self._pool)

    def complete(self, sink: Sink, name: str, size: int) -> None:
        """A file is complete: publish it."""
        sink.close()
        self._open.remove(sink)
        self.files.append((name, size))
        self._reporter.wrote(size)

    def discard(self) -> None:
        """Discard incomplete files."""
        for sink in self._open:
            sink.discard()
        self._open = []

    def segment(
        self,
        name: str,
        kind: str,
        fields: tuple[int, ...],
        version: int,
        covered: BitMap,
        details: bytes,
        index_version: int,
    ) -> IndexSegment:
        """The description of the segment with these files."""
        return IndexSegment(
            uuid=self.uuid,
            name=name,
            fields=fields,
            dataset_version=version,
            kind=kind,
            details=details,
            fragment_ids=covered,
            index_version=index_version,
            created_at=time.time_ns() // 1_000_000,
            base_id=None,
            files=tuple(self.files),
        )


@contextmanager
def index_folder(snapshot: Snapshot, reporter: Reporter) -> Iterator[IndexFolder]:
    """A folder for the files of a segment; they are removed if writing fails."""
    check_writable(snapshot.manifest)
    with Pool(2, "lance-encode") as pool:
        folder = IndexFolder(snapshot.store, pool, reporter)
        try:
            yield folder
        except BaseException:
            folder.discard()
            delete_quietly(snapshot.store, folder.paths())
            raise


class _IndexFile:
    """One file of an index being written."""

    def __init__(self, folder: IndexFolder, sink: Sink, name: str, schema: Schema, pool: Pool) -> None:
        self._folder, self._sink, self._name = folder, sink, name
        self._writer = DataFileWriter(sink, schema, _OPTIONS, pool)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write(batch)

    def finish(self, metadata: Mapping[str, str], buffers: Iterable[bytes] = ()) -> None:
        """Complete the file."""
        self._folder.complete(self._sink, self._name, self._writer.finish(metadata, buffers))
