"""A single file as a table: its own schema, its rows by range or number, and its extra buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError
from lance_engine.file.columns import columns_of
from lance_engine.file.decoding import Overlays, decode_fetched, one_by_one, one_range
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.reader import FileReader
from lance_engine.format.schema import schema_from_messages
from lance_engine.schema_tree import Schema


class FileTable:
    """A file of version 2.x whose columns are those that its own schema describes."""

    def __init__(self, file: FileReader) -> None:
        self._file = file
        with file.placed():
            message = file.descriptor.schema
            self.schema: Schema = schema_from_messages(message.fields, message.metadata)
            self.schema.to_arrow()  # raises for types that decoders do not expect, as lists of two fields
            self.rows = int(file.descriptor.length)
            version = (2, 0) if file.version == "2.0" else (2, 1)
            self._places = {field.id: number for number, field in enumerate(columns_of(self.schema, version))}
            if len(self._places) != file.num_columns:
                raise CorruptFileError(
                    f"The schema of the file describes {len(self._places)} columns, but the file has "
                    f"{file.num_columns}"
                )
        self._projections: dict[tuple[str, ...], _Projection] = {}

    @property
    def path(self) -> str:
        return self._file.path

    def buffer(self, number: int) -> bytes:
        """An extra buffer of the file; 0 is its schema."""
        return self._file.global_buffer(number)

    def read(self, names: Sequence[str], begin: int = 0, end: int | None = None) -> pa.RecordBatch:
        """Rows [begin, end) of some columns."""
        stop = self.rows if end is None else end
        return self._projection(names).decode(
            partial(one_range, begin, stop),
            lambda columns, overlays: columns.decode_range(begin, stop, overlays),
        )

    def read_rows(self, names: Sequence[str], rows: npt.NDArray[np.uint32]) -> pa.RecordBatch:
        """The rows with these ascending numbers."""
        return self._projection(names).decode(
            partial(one_by_one, rows), lambda columns, overlays: columns.decode_rows(rows, overlays)
        )

    def _projection(self, names: Sequence[str]) -> _Projection:
        key = tuple(names)
        projection = self._projections.get(key)
        if projection is None:
            projection = self._projections.setdefault(key, _Projection(self._file, self, self._places, key))
        return projection


class _Projection:
    """Some columns, with their decoders."""

    def __init__(
        self, file: FileReader, table: FileTable, places: dict[int, int], names: tuple[str, ...]
    ) -> None:
        fields = []
        for name in names:
            field = next((field for field in table.schema.fields if field.name == name), None)
            if field is None:
                raise CorruptFileError(f"Column '{name}' not found in the file", path=file.path)
            fields.append(field)
        builder = FieldBuilder(lambda field: (file, places[field.id]), table.rows)
        with file.placed():
            self._columns = kernels.Columns([builder.build(field) for field in fields])
        self._leaves = list(builder.leaves.items())
        self._file = file
        self._schema = pa.schema([field.to_arrow().remove_metadata() for field in fields])

    def decode(
        self,
        ranges: Callable[[], npt.NDArray[np.int64]],
        decode: Callable[[kernels.Columns, Overlays], kernels.DecodedBatch],
    ) -> pa.RecordBatch:
        with self._file.placed():
            decoded = decode_fetched(self._leaves, ranges, lambda overlays: decode(self._columns, overlays))
            batch = pa.RecordBatch._import_from_c(decoded.address, self._schema)
            for field, column in zip(self._schema, batch.columns, strict=True):
                if column.null_count and not field.nullable:
                    raise CorruptFileError("A non-nullable column contains nulls", column=field.name)
        return batch
