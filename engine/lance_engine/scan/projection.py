"""Some columns of a reader: how they are decoded, and reading them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import compute as pc
from lance_engine import kernels
from lance_engine.arrow_values import to_numpy
from lance_engine.errors import CorruptFileError
from lance_engine.file.decoding import LeafSource, Overlays, decode_fetched, one_by_one, one_range
from lance_engine.file.fields import ShortColumn
from lance_engine.metrics import count_read, note_pages
from lance_engine.scan.selection import Selection
from lance_engine.scan.touched import PageMap
from lance_engine.scan.types import to_declared

if TYPE_CHECKING:
    from lance_engine.scan.layout import OutputColumn, ProjectedColumns
    from lance_engine.scan.reader import RowsReader

# Minimum size in bytes at which copying a value matters.
_WIDE_VALUE = 128

U32Array = npt.NDArray[np.uint32]


class BuiltField(NamedTuple):
    """A decoder, and per file the leaves whose bytes can be prefetched."""

    decoder: kernels.Field
    leaves: dict[LeafSource, list[kernels.LeafColumn]]
    short: ShortColumn | None


class Decoders:
    """Decodes some columns, or tests of columns, in a fixed order. Immutable."""

    def __init__(
        self,
        columns: ProjectedColumns | pa.Schema,
        fields: Sequence[BuiltField],
    ) -> None:
        """Of stored columns, among others; of tests, `columns` is the schema of their outcomes."""
        if isinstance(columns, pa.Schema):
            self.schema = self.decoded = columns
            self.outputs: tuple[OutputColumn, ...] = ()
            #: which of the decoded columns must not hold nulls
            self.required: list[int] = []
            self.is_plain = True
        else:
            self.schema, self.decoded = columns.schema, columns.decoded
            self.outputs, self.required = columns.outputs, columns.required
            self.is_plain = columns.is_plain
        #: the column with the fewest rows, if one has too few
        self.short = min((built.short for built in fields if built.short is not None), default=None)
        leaves: dict[LeafSource, list[kernels.LeafColumn]] = {}
        for built in fields:
            for file, leaf_columns in built.leaves.items():
                leaves.setdefault(file, []).extend(leaf_columns)
        self.columns = kernels.Columns([built.decoder for built in fields])
        self.leaves = list(leaves.items())
        self.is_local = all(file.is_local for file in leaves)
        #: name, first row of each page and then the number of rows, of leaves with an item per row
        self.pages = [
            (leaf.name, leaf.page_starts) for _, leaf_columns in self.leaves for leaf in leaf_columns
        ]
        #: rows at which a batch of wide values should end: values within a page need not be copied
        self.borders = sorted(
            {
                start
                for file, leaf_columns in self.leaves
                if file.is_local
                for leaf in leaf_columns
                if leaf.value_bytes >= _WIDE_VALUE
                for start in leaf.page_starts
            }
        )

    def narrowed(self, names: Collection[str]) -> Decoders:
        """A copy with the decimals of these columns in 64 bits."""
        indices = [index for index, name in enumerate(self.decoded.names) if name in names]
        if not indices:
            return self
        narrowed = copy.copy(self)
        narrowed.columns = self.columns.narrowed(indices)
        narrowed.schema = narrowed.decoded = narrowed_schema(self.decoded, names)
        return narrowed


class Projection:
    """Some columns of the rows of a reader, or tests of columns, in a fixed order."""

    __slots__ = ("_decoders", "_reader")

    def __init__(self, reader: RowsReader, decoders: Decoders) -> None:
        self._reader = reader
        self._decoders = decoders

    @property
    def schema(self) -> pa.Schema:
        return self._decoders.schema

    @property
    def required(self) -> list[int]:
        """Which of the decoded columns must not contain nulls."""
        return self._decoders.required

    @property
    def borders(self) -> list[int]:
        """Rows at which a batch of wide values should end."""
        return self._decoders.borders

    @property
    def native(self) -> kernels.Columns | None:
        """Decodes these columns directly, if possible."""
        decoders = self._decoders
        return (
            decoders.columns if decoders.is_plain and decoders.is_local and decoders.short is None else None
        )

    def narrowed(self, names: Collection[str]) -> Projection:
        """A copy with the decimals of these columns in 64 bits, if only decoding is needed."""
        if not names or not self._decoders.is_plain:
            return self
        return Projection(self._reader, self._decoders.narrowed(names))

    @property
    def leaves(self) -> Sequence[tuple[LeafSource, list[kernels.LeafColumn]]]:
        """The leaves whose bytes can be fetched ahead, by file."""
        return self._decoders.leaves

    @property
    def page_map(self) -> PageMap:
        """The positions of the pages of the columns, without references to the files."""
        return PageMap(self._reader.fragment_rows, self._decoders.pages)

    def read(self, selection: Selection) -> pa.RecordBatch:
        """The rows of a selection. `kernels.BatchTooLargeError` asks for fewer rows."""
        note_pages(partial(self.page_map.touched, selection))
        if selection.is_range:
            return self.read_range(selection.begin, selection.end)
        if selection.prefers_rows:
            return self.read_rows(selection.offsets)
        ranges = selection.ranges
        with self._reader.placed():
            self._check_end(selection.end)
            batch = self._decode(
                lambda: ranges,
                lambda overlays: self._decoders.columns.decode_ranges(ranges, overlays),
                lambda: selection.offsets,
            )
        if self._decoders.is_plain:
            return batch
        return self._complete(
            batch,
            lambda: selection.offsets,
            lambda name: self._reader.system_values(name, selection.offsets),
        )

    def read_range(self, begin: int, end: int) -> pa.RecordBatch:
        """Rows [begin, end) of the fragment, deleted ones included.

        Decoding runs without the interpreter lock. `kernels.BatchTooLargeError` asks for fewer rows.
        """
        offsets = partial(np.arange, begin, end, dtype=np.uint32)
        with self._reader.placed():
            self._check_end(end)
            batch = self._decode(
                partial(one_range, begin, end),
                lambda overlays: self._decoders.columns.decode_range(begin, end, overlays),
                offsets,
            )
        if self._decoders.is_plain:
            return batch
        return self._complete(
            batch,
            offsets,
            lambda name: self._reader.system_column(name, begin, end),
        )

    @property
    def takes_masks(self) -> bool:
        """Whether `read_wanted` can be called."""
        decoders = self._decoders
        return (
            decoders.is_plain and decoders.is_local and decoders.short is None and decoders.columns.take_masks
        )

    def read_wanted(self, begin: int, end: int, mask: pa.BooleanArray) -> pa.RecordBatch:
        """The rows of [begin, end) at which `mask`, without nulls, is true.

        Values of other rows are dropped while they are in the cache of the processor, or not decoded.
        """
        note_pages(partial(self.page_map.touched, Selection.of_range(begin, end)))
        bits = np.frombuffer(mask.buffers()[1], dtype=np.uint8)
        with self._reader.placed():
            return self._import(
                self._decoders.columns.decode_wanted(begin, end, bits, mask.offset),
                lambda: begin + np.flatnonzero(to_numpy(mask)),
            )

    def read_rows(self, rows: U32Array) -> pa.RecordBatch:
        """The rows at ascending offsets; an offset may repeat."""
        with self._reader.placed():
            self._check_end(int(rows[-1]) + 1 if len(rows) else 0)
            batch = self._decode(
                partial(one_by_one, rows),
                lambda overlays: self._decoders.columns.decode_rows(rows, overlays),
                lambda: rows,
            )
        if self._decoders.is_plain:
            return batch
        return self._complete(batch, lambda: rows, lambda name: self._reader.system_values(name, rows))

    def check_rows(self) -> None:
        """CorruptFileError if a column has fewer rows than the fragment."""
        with self._reader.placed():
            self._check_end(self._reader.rows)

    def _check_end(self, end: int) -> None:
        short = self._decoders.short
        if short is not None and end > short.rows:
            raise short.error()

    def _decode(
        self,
        ranges: Callable[[], npt.NDArray[np.int64]],
        decode: Callable[[Overlays], kernels.DecodedBatch],
        offsets: Callable[[], npt.NDArray[Any]],
    ) -> pa.RecordBatch:
        """Fetch the data for `ranges` of rows, if files are remote, and decode it: the rows at `offsets`."""
        return self._import(decode_fetched(self._decoders.leaves, ranges, decode), offsets)

    def _import(
        self, decoded: kernels.DecodedBatch, offsets: Callable[[], npt.NDArray[Any]]
    ) -> pa.RecordBatch:
        if self._decoders.is_local:
            count_read(0, decoded.bytes_read)
        batch = pa.RecordBatch._import_from_c(decoded.address, self._decoders.decoded)
        for index in self.required:
            if batch.column(index).null_count and self._has_live_null(batch.column(index), offsets()):
                raise CorruptFileError(
                    "A non-nullable column contains nulls",
                    column=self._decoders.decoded.field(index).name,
                )
        return batch

    def _has_live_null(self, column: pa.Array, offsets: npt.NDArray[Any]) -> bool:
        """Whether a live row is null; a column that became non-nullable keeps the nulls of deleted rows."""
        deleted = self._reader.deleted()
        nulls = offsets[to_numpy(column.is_null())]
        return deleted is None or not np.isin(nulls, deleted).all()

    def _complete(
        self, batch: pa.RecordBatch, offsets: Callable[[], U32Array], system: Any
    ) -> pa.RecordBatch:
        """Add the columns that are not stored, and restore dictionary types."""
        if not self._decoders.outputs:
            return batch
        arrays = []
        for output in self._decoders.outputs:
            if output.wanted is None:
                arrays.append(system(output.arrow.name))
            elif not output.stored:
                arrays.append(pa.nulls(len(offsets()), output.arrow.type))
            else:
                held = batch.columns[output.decoded : output.decoded + len(output.stored)]
                if len(held) > 1:
                    held = self._without_deleted(held, offsets())
                arrays.append(self._declared(held, output))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _without_deleted(self, held: Sequence[pa.Array], offsets: U32Array) -> Sequence[pa.Array]:
        """Parts of a column from several files with nulls for deleted rows, which may differ."""
        deleted = self._reader.deleted()
        if deleted is None:
            return held
        dead = np.isin(offsets, deleted)
        if not dead.any():
            return held
        kept = pa.array(np.arange(len(offsets)), mask=dead)
        return [pc.take(part, kept) for part in held]

    def _declared(self, held: Sequence[pa.Array], output: OutputColumn) -> pa.Array:
        if len(held) == 1 and held[0].type.equals(output.arrow.type):
            return held[0]
        assert output.wanted is not None
        with self._reader.placed():
            try:
                parts = list(zip(held, output.stored, strict=True))
                array = to_declared(parts, output.wanted, self._reader.blobs)
            except kernels.InvalidJsonError as error:
                raise kernels.CorruptDataError(
                    f"Invalid JSON value: {error.args[0]}", output.arrow.name, None, None
                ) from error
        return pc.struct_field(array, output.places) if output.places else array


def narrowed_schema(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """A schema with the decimals of these columns in 64 bits."""
    return pa.schema(
        [
            field.with_type(pa.decimal64(field.type.precision, field.type.scale))
            if field.name in names
            else field
            for field in schema
        ],
        metadata=schema.metadata,
    )
