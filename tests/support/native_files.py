"""Single data files through our own reader: from memory, counting ranges, or mapped from disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from corpus import difference
from lance_engine import kernels
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.reader import FileReader
from lance_engine.io.local import LocalStore
from lance_engine.io.memory import MemoryStore
from lance_engine.io.store import Store
from lance_engine.scan.types import without_dictionaries
from lance_engine.schema_tree import Field, Schema


def _stored_in_2_0(fields: Iterable[Field]) -> Iterator[Field]:
    """Fields with a column in a file of version 2.0: structs and lists too, nothing below a packed one."""
    for field in fields:
        yield field
        if not field.is_packed:
            yield from _stored_in_2_0(field.children)


class NativeFile:
    """A file whose columns are numbered as the leaves of `schema`, or (2.0) as all its fields."""

    def __init__(self, store: Store, path: str, schema: pa.Schema) -> None:
        self.schema = schema
        self.reader = FileReader(store, path)
        fields = Schema.from_arrow(schema)
        stored = fields.leaves() if self.reader.version != "2.0" else _stored_in_2_0(fields.fields)
        columns = {field.id: number for number, field in enumerate(stored)}

        def find(field: Field) -> tuple[FileReader, int]:
            return self.reader, columns[field.id]

        self.rows = self.reader.descriptor.length
        builder = FieldBuilder(find, self.rows)
        self._fields = [builder.build(field) for field in fields.fields]
        self._columns = kernels.Columns(self._fields)
        self._leaves = builder.leaves.get(self.reader, [])
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
        return self._decode(
            [(start, stop)], lambda overlays: self._columns.decode_range(start, stop, overlays)
        )

    def rows_at(self, rows: Sequence[int]) -> pa.Table:
        """Single rows, in rising order."""
        numbers = np.array(rows, np.uint32)
        ranges = [(row, row + 1) for row in rows]
        return self._decode(ranges, lambda overlays: self._columns.decode_rows(numbers, overlays))

    def tested(self, column: str, test: kernels.ValueTest) -> list[bool | None]:
        """Whether each value of a top-level column passes a test, which is done while decoding."""
        field = self._fields[self.schema.get_field_index(column)].tested(test)
        assert field is not None, "the column cannot be tested so"
        columns = kernels.Columns([field])

        def decode(overlays: Any) -> kernels.DecodedBatch:
            return columns.decode_range(0, self.rows, overlays)

        schema = pa.schema([(column, pa.bool_())])
        found: list[bool | None] = self._decode([(0, self.rows)], decode, schema)[column].to_pylist()
        return found

    def narrowed(self) -> pa.ChunkedArray:
        """The decimals of the first column in 64 bits, as integers."""
        return self._first(kernels.Columns(self._fields[:1]).narrowed([0]), pa.int64())

    def numbered(self, strings: kernels.StringNumbers, kind: pa.DataType) -> pa.ChunkedArray:
        """The numbers of the strings of the first column."""
        field = self._fields[0].mapped(strings)
        assert field is not None, "the column has no strings"
        return self._first(kernels.Columns([field]), kind)

    def _first(self, columns: kernels.Columns, kind: pa.DataType) -> pa.ChunkedArray:
        def decode(overlays: Any) -> kernels.DecodedBatch:
            return columns.decode_range(0, self.rows, overlays)

        return self._decode([(0, self.rows)], decode, pa.schema([("first", kind)])).column(0)

    def _decode(
        self,
        ranges: list[tuple[int, int]],
        decode: Callable[[Any], kernels.DecodedBatch],
        schema: pa.Schema | None = None,
    ) -> pa.Table:
        with self.reader.placed():
            overlay = self.reader.overlay(self._leaves, np.array(ranges, dtype=np.int64).reshape(-1, 2))
            while True:
                try:
                    batch = decode([overlay])
                    break
                except (
                    kernels.NotResidentError
                ) as missing:  # only the data could tell that this is needed too
                    _, offset, length, lasting = missing.args
                    self.reader.fetch(overlay[0 if lasting else 1], offset, length)
        decoded = pa.RecordBatch._import_from_c(batch.address, schema or self._decoded_schema)
        return pa.Table.from_batches([decoded])

    def table(self) -> pa.Table:
        """All rows."""
        return self.range(0, self.rows)


def check_everywhere(
    file: NativeFile, table: pa.Table, ranges: Sequence[Sequence[int]], rows: Sequence[int]
) -> None:
    """Whole, ranges and single rows of `file` are those of `table`."""
    if table.num_rows == 0:
        return
    schema = pa.schema([field.with_type(without_dictionaries(field.type)) for field in table.schema])
    expected = table if schema == table.schema else table.cast(schema)
    assert difference(file.table(), expected) == ""
    for start, stop in ranges:
        assert difference(file.range(start, stop), expected.slice(start, stop - start)) == "", (start, stop)
    assert difference(file.rows_at(rows), expected.take(pa.array(rows, pa.int64()))) == "", rows
