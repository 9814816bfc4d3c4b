"""Single data files through our own reader: from memory, counting ranges, or mapped from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from lance_engine import kernels
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.reader import FileReader
from lance_engine.io.local import LocalStore
from lance_engine.io.memory import MemoryStore
from lance_engine.io.store import Store
from lance_engine.scan.types import without_dictionaries
from lance_engine.types import Field, Schema


class NativeFile:
    """A file whose columns are numbered as the leaves of `schema`."""

    def __init__(self, store: Store, path: str, schema: pa.Schema) -> None:
        self.schema = schema
        self._reader = FileReader(store, path)
        fields = Schema.from_arrow(schema)
        columns = {leaf.id: number for number, leaf in enumerate(fields.leaves())}

        def find(field: Field) -> tuple[FileReader, int]:
            return self._reader, columns[field.id]

        self.rows = self._reader.descriptor.length
        builder = FieldBuilder(find, self.rows)
        self._columns = kernels.Columns([builder.build(field) for field in fields.fields])
        self._leaves = builder.leaves.get(self._reader, [])
        self._decoded_schema = pa.schema(
            [field.with_type(without_dictionaries(field.type)) for field in schema]
        )

    @classmethod
    def in_memory(cls, data: bytes, schema: pa.Schema) -> NativeFile:
        store = MemoryStore()
        store.put("file.lance", data)
        return cls(store, "file.lance", schema)

    @classmethod
    def mapped(cls, path: Path, schema: pa.Schema) -> NativeFile:
        return cls(LocalStore(str(path.parent)), path.name, schema)

    def range(self, start: int, stop: int) -> pa.Table:
        """Rows [start, stop)."""
        with self._reader.placed():
            overlay = self._reader.overlay(self._leaves, [(start, stop)])
        with self._reader.placed():
            batch = self._columns.decode_range(start, stop, [overlay])
        return self._import(batch)

    def rows_at(self, rows: Sequence[int]) -> pa.Table:
        """Single rows, in rising order."""
        numbers = np.array(rows, np.uint32)
        with self._reader.placed():
            overlay = self._reader.overlay(self._leaves, [(row, row + 1) for row in rows])
        with self._reader.placed():
            batch = self._columns.decode_rows(numbers, [overlay])
        return self._import(batch)

    def _import(self, batch: kernels.DecodedBatch) -> pa.Table:
        return pa.Table.from_batches([pa.RecordBatch._import_from_c(batch.address, self._decoded_schema)])

    def table(self) -> pa.Table:
        """All rows."""
        return self.range(0, self.rows)
