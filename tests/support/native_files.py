"""Single data files through our own reader: from memory, counting ranges, or mapped from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from lance_engine import kernels
from lance_engine.file.reader import FileReader, build_node
from lance_engine.io.local import LocalStore
from lance_engine.io.memory import MemoryStore
from lance_engine.io.store import Store
from lance_engine.types import Field, Schema


def decoded_type(arrow_type: pa.DataType) -> pa.DataType:
    """The type with dictionaries replaced by their values: that is what the decoders give."""
    if pa.types.is_dictionary(arrow_type):
        return arrow_type.value_type
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(decoded_type(field.type)) for field in arrow_type])
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(decoded_type(arrow_type.value_type)))
    return arrow_type


class NativeFile:
    """A file whose columns are numbered as the leaves of `schema`."""

    def __init__(self, store: Store, path: str, schema: pa.Schema) -> None:
        self.schema = schema
        self._reader = FileReader(store, path)
        self._leaves: list[kernels.LeafColumn] = []
        self._columns = kernels.Columns(
            [build_node(field, self._leaf) for field in Schema.from_arrow(schema).fields]
        )
        self.rows = self._leaves[0].rows
        self._decoded_schema = pa.schema([field.with_type(decoded_type(field.type)) for field in schema])

    @classmethod
    def in_memory(cls, data: bytes, schema: pa.Schema) -> NativeFile:
        store = MemoryStore()
        store.put("file.lance", data)
        return cls(store, "file.lance", schema)

    @classmethod
    def mapped(cls, path: Path, schema: pa.Schema) -> NativeFile:
        return cls(LocalStore(str(path.parent)), path.name, schema)

    def _leaf(self, field: Field, layers: Sequence[str], name: str) -> kernels.LeafColumn:
        leaf = self._reader.leaf(field, len(self._leaves), layers, name)
        self._leaves.append(leaf)
        return leaf

    def range(self, start: int, stop: int) -> pa.Table:
        """Rows [start, stop)."""
        with self._reader._placed():
            overlay = self._reader.overlay(self._leaves, [(start, stop)])
        with self._reader._placed():
            batch = self._columns.decode_range(start, stop, [] if overlay is None else [overlay])
        return self._import(batch)

    def rows_at(self, rows: Sequence[int]) -> pa.Table:
        """Single rows, in rising order."""
        numbers = np.array(rows, np.uint32)
        with self._reader._placed():
            overlay = self._reader.overlay(self._leaves, [(row, row + 1) for row in rows])
        with self._reader._placed():
            batch = self._columns.decode_rows(numbers, [] if overlay is None else [overlay])
        return self._import(batch)

    def _import(self, batch: kernels.DecodedBatch) -> pa.Table:
        return pa.Table.from_batches([pa.RecordBatch._import_from_c(batch.address, self._decoded_schema)])

    def table(self) -> pa.Table:
        """All rows."""
        return self.range(0, self.rows)
