"""The rows of the source of a merge: in memory, or in a mapped temporary file if they are large."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: Maximum size of a source in memory; larger ones are stored in a temporary file.
MEMORY_BYTES: Final = 256 << 20
# Rows of a batch, so that looking up a few rows maps few bytes.
_BATCH_ROWS: Final = 1 << 16

I64Array = npt.NDArray[np.int64]


class SourceRows:
    """Batches that are read once, and then looked up by row number. Closing it removes the file."""

    def __init__(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self.schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._file: pa.MemoryMappedFile | None = None
        self._read(batches, memory_bytes)
        lengths = [batch.num_rows for batch in self._batches]
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.num_rows = sum(lengths)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._batches = []
        if self._file is not None:
            self._file.close()

    @property
    def is_spilled(self) -> bool:
        """Whether the rows are in a temporary file."""
        return self._file is not None

    def column(self, name: str) -> pa.Array:
        """One whole column, in memory."""
        chunks = [batch.column(name) for batch in self._batches]
        return pa.concat_arrays(chunks) if chunks else pa.array([], self.schema.field(name).type)

    def take(self, rows: I64Array, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """The rows with these numbers, in this order."""
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        if not len(rows):
            return pa.RecordBatch.from_pylist([], schema=schema)
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        owners = np.searchsorted(self._starts, ascending, side="right") - 1
        parts = []
        for number in np.unique(owners).tolist():
            first, last = np.searchsorted(owners, [number, number + 1])
            inside = ascending[first:last] - self._starts[number]
            parts.append(self._batches[number].select(schema.names).take(pa.array(inside)))
        joined = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
        if (order[1:] > order[:-1]).all():
            return joined
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        return joined.take(pa.array(places))

    def _read(self, batches: Iterable[pa.RecordBatch], memory_bytes: int) -> None:
        size = 0
        source = iter(batches)
        for batch in source:
            self._batches += _pieces(batch)
            size += batch.nbytes
            if size > memory_bytes:
                self._spill(source)
                return

    def _spill(self, rest: Iterable[pa.RecordBatch]) -> None:
        with tempfile.NamedTemporaryFile(prefix="lance-merge-", suffix=".arrow") as file:
            with pa.ipc.new_file(file, self.schema) as writer:
                for held in self._batches:
                    writer.write_batch(held)
                self._batches = []
                for batch in rest:
                    for piece in _pieces(batch):
                        writer.write_batch(piece)
            file.flush()
            # The mapping stays valid after the file name is removed.
            self._file = pa.memory_map(file.name)
        reader = pa.ipc.open_file(self._file)
        self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]


def _pieces(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [batch.slice(start, _BATCH_ROWS) for start in range(0, batch.num_rows, _BATCH_ROWS)]
