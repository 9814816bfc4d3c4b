"""One partition of an inverted index: tokens and documents in memory, posting lists read on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from lance_engine import kernels
from lance_engine.encodings.faults import fault_of
from lance_engine.errors import CorruptFileError, LanceError
from lance_engine.file.table import FileTable
from lance_engine.index.files import SegmentFiles, whole_numbers
from lance_engine.index.inverted import layout as names
from lance_engine.index.inverted.layout import Layout, file_name

U8Array = npt.NDArray[np.uint8]
I64Array = npt.NDArray[np.int64]

# Number of posting lists that are read at once when all are needed.
_LISTS: Final = 2048


class TextPartition:
    """An open partition. CorruptFileError if its files are inconsistent."""

    def __init__(self, files: SegmentFiles, number: int, layout: Layout) -> None:
        self._layout = layout
        self._lists = files.open(file_name(number, "invert"), [names.POSTING, names.COUNT])
        documents = files.open(file_name(number, "docs"), [names.ROW_ID, names.LENGTH])
        batch = documents.read([names.ROW_ID, names.LENGTH])
        rows, lengths = (whole_numbers(column) for column in batch.columns)
        self.rows: npt.NDArray[np.uint64] = np.ascontiguousarray(rows, dtype=np.uint64)
        self.lengths: npt.NDArray[np.uint32] = np.ascontiguousarray(lengths, dtype=np.uint32)
        if not (self.rows[1:] > self.rows[:-1]).all() and len(np.unique(self.rows)) < len(self.rows):
            raise CorruptFileError("A row is in the index more than once", path=documents.path)
        self.part = kernels.TextPart(self.rows, self.lengths, layout.block_size == 256)
        self.tokens = self._open_tokens(files.open(file_name(number, "tokens")))
        self.has_positions = layout.with_position and any(
            name in self._lists.schema.names for name in (names.POSITIONS, names.OWN_POSITIONS)
        )

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without posting lists."""
        return int(self.tokens.nbytes + self.part.nbytes + self.rows.nbytes + self.lengths.nbytes)

    def counts(self, numbers: Sequence[int]) -> list[int]:
        """How many documents contain each of some tokens."""
        wanted = np.unique(np.array(numbers, dtype=np.uint32))
        read = whole_numbers(self._lists.read_rows([names.COUNT], wanted).column(0)).tolist()
        by_number = dict(zip(wanted.tolist(), read, strict=True))
        return [by_number[number] for number in numbers]

    def postings(self, number: int, *, positions: bool) -> kernels.Postings:
        """The documents of a token."""
        batch = self._lists.read(self._columns(positions), number, number + 1)
        return self._postings(batch, 0)

    def all_postings(self, *, positions: bool) -> Iterator[tuple[bytes, kernels.Postings]]:
        """Every token with its documents."""
        by_number = {number: token for token, number in map(self.tokens.entry, range(len(self.tokens)))}
        for begin in range(0, self._lists.rows, _LISTS):
            end = min(begin + _LISTS, self._lists.rows)
            batch = self._lists.read(self._columns(positions), begin, end)
            for number in range(begin, end):
                if number in by_number:
                    yield by_number[number], self._postings(batch, number - begin)

    def _columns(self, positions: bool) -> list[str]:
        columns = [names.POSTING, names.COUNT]
        if positions and names.POSITIONS in self._lists.schema.names:
            columns += [names.POSITIONS, names.POSITION_OFFSETS]
        elif positions:
            columns.append(names.OWN_POSITIONS)
        return columns

    def _postings(self, batch: pa.RecordBatch, row: int) -> kernels.Postings:
        layout = self._layout
        try:
            count = int(whole_numbers(batch.column(1))[row])
            postings = kernels.Postings(
                self.part,
                layout.block_size,
                layout.varint_tail,
                *_binaries(_items(batch.column(0), row)),
                count,
            )
            if batch.num_columns == 4:
                offsets = whole_numbers(_items(batch.column(3), row)).astype(np.uint32)
                ends, data = _binaries(batch.column(2).slice(row, 1))
                postings.read_shared_positions(
                    layout.block_size, layout.packed_positions, offsets, data[ends[0] : ends[1]]
                )
            elif batch.num_columns == 3:
                documents = _items(batch.column(2), row)
                boundaries = np.asarray(documents.offsets).astype(np.int64)
                # Ends of all binaries of these documents, and of no others.
                first, last = (int(boundaries[0]), int(boundaries[-1])) if len(documents) else (0, 0)
                parts = documents.values.slice(first, last - first)
                postings.read_own_positions(boundaries - first, *_binaries(parts))
        except (LanceError, kernels.CorruptDataError) as error:
            raise _placed(error, self._lists) from error
        return postings

    def _open_tokens(self, file: FileTable) -> kernels.TokenSet:
        limit = self._lists.rows
        try:
            if names.TRANSDUCER in file.schema.names:
                batch = file.read([names.TRANSDUCER, names.TRANSDUCER_TOTAL])
                if batch.num_rows != 1:
                    raise CorruptFileError("The tokens of the index are not a single row")
                ends, data = _binaries(batch.column(0))
                total = int(whole_numbers(batch.column(1))[0])
                return kernels.TokenSet.transducer(data[ends[0] : ends[1]], limit, min(total, 2**63))
            batch = file.read([names.TOKEN, names.TOKEN_ID])
            numbers = whole_numbers(batch.column(1)).astype(np.uint32)
            tokens = batch.column(0)
            if not (at.is_string(tokens.type) or at.is_large_string(tokens.type)) or tokens.null_count:
                raise CorruptFileError("The tokens of the index are not strings")
            return kernels.TokenSet.listed(*_binaries(tokens.cast(pa.large_utf8())), numbers, limit)
        except (LanceError, kernels.CorruptDataError) as error:
            raise _placed(error, file) from error


def _placed(error: LanceError | kernels.CorruptDataError, file: FileTable) -> LanceError:
    """The error, with the file in which it was found."""
    if isinstance(error, LanceError):
        return error.at(path=file.path)
    return fault_of(error, path=file.path) or CorruptFileError(str(error), path=file.path)


class Lists(NamedTuple):
    """Binaries as their ends and bytes."""

    ends: I64Array
    data: U8Array


def _items(lists: pa.Array, row: int) -> pa.Array:
    """The items of a list, which must exist."""
    if not (at.is_list(lists.type) or at.is_large_list(lists.type)):
        raise CorruptFileError(f"A column of the index has type {lists.type}, expected lists")
    items = lists[row].values
    if items is None or items.null_count:
        raise CorruptFileError("A list of the index is null, or has nulls in it")
    return items


def _binaries(values: pa.Array) -> Lists:
    """Ends and bytes of binaries without nulls."""
    if at.is_binary(values.type):
        values = values.cast(pa.large_binary())
    if not (at.is_large_binary(values.type) or at.is_large_string(values.type)) or values.null_count:
        raise CorruptFileError(
            f"A column of the index has type {values.type} or contains nulls, expected binary values"
        )
    _, offsets, data = values.buffers()
    if offsets is None or not len(values):
        return Lists(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))
    ends = np.frombuffer(offsets, dtype=np.int64, count=len(values) + 1, offset=8 * values.offset)
    return Lists(ends, np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8))
