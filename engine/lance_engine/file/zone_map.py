"""Zone maps: minimum, maximum and null count of a column per zone of rows, stored in the data file.

They are found in two ways: either the schema metadata of a file contains their positions next to plain
columns (see `lance_engine.format.zone_map_place`), or the encoding of a column is ``zone_index`` (format
2.0), which wraps another encoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.arrow_values import to_numpy
from lance_engine.errors import CorruptFileError, LanceError
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.reader import FileReader
from lance_engine.format.container import COLUMN_ENCODING, ColumnMetadata
from lance_engine.format.pb import encodings_pb2
from lance_engine.format.zone_map_place import ZoneMapPlace, parse_zone_map_place
from lance_engine.io.memory import MemoryStore
from lance_engine.metrics import counting
from lance_engine.schema_tree import NO_PARENT, Field

if TYPE_CHECKING:
    from lance_engine.expr.statistics import ColumnStatistics

_COLUMN_BUFFER = 1
_REMEDY = "Scan with zone_maps=False, and rewrite the file"


@dataclass(frozen=True)
class ZoneMap:
    """The zone map of a column with `rows` rows; the last zone may be shorter than `rows_per_zone`.

    `minimum` and `maximum` have the type of the column and are null if a zone has no bound. `null_count`
    (int64) counts the nulls, for struct fields including those of the parent structs. In the bounds NaN is
    the largest value, unless `nan_order_known` is False: then zones may contain NaN, whatever their bounds
    are.
    """

    rows: int
    rows_per_zone: int
    minimum: pa.Array
    maximum: pa.Array
    null_count: npt.NDArray[np.int64]
    nan_order_known: bool

    @property
    def zones(self) -> int:
        return len(self.minimum)

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first row of every zone."""
        return np.arange(self.zones, dtype=np.int64) * self.rows_per_zone

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The rows of every zone."""
        return np.minimum(self.starts + self.rows_per_zone, self.rows) - self.starts

    @cached_property
    def statistics(self) -> ColumnStatistics:
        """The same in the form used for matching filters."""
        from lance_engine.expr.statistics import ColumnStatistics

        valid = self.lengths - self.null_count
        nan_count: npt.NDArray[np.int64] | None = None
        if self.nan_order_known and pa.types.is_floating(self.minimum.type):
            # The maximum shows whether there is a NaN, the minimum whether there are other values. Their
            # number does not matter beyond that.
            some, all_ = _nan_flags(self.maximum), _nan_flags(self.minimum)
            nan_count = np.where(all_, valid, np.minimum(some, valid))
        return ColumnStatistics.from_counts(
            self.lengths, self.minimum, self.maximum, self.null_count, nan_count
        )


def read_zone_map(file: FileReader, column: int, leaf: Field, name: str) -> ZoneMap | None:
    """The zone map of a column outside of lists; None if it has none.

    `leaf` is the field of the column, `name` its path for errors. CorruptFileError if the zone map is
    inconsistent.
    """
    metadata = file.column_metadata(column)
    try:
        with file.placed(column=name):
            place = _place(file, metadata)
            if place is None:
                return None
            rows_per_zone, buffer, is_ours = place
            data = file.read(*metadata.buffers[buffer])
            zones = -(-metadata.rows // rows_per_zone)
            minimum, maximum, null_count = parse_zone_map(data, zones, leaf, file.path)
    except LanceError as error:
        message = f"The zone map of the column cannot be read: {error.message}"
        raise CorruptFileError(message, remedy=_REMEDY, **error.place) from error
    zone_map = ZoneMap(metadata.rows, rows_per_zone, minimum, maximum, null_count, nan_order_known=is_ours)
    if (zone_map.null_count > zone_map.lengths).any():
        raise CorruptFileError(
            "The zone map of the column has more nulls than rows",
            path=file.path,
            column=name,
            remedy=_REMEDY,
        )
    return zone_map


def _place(file: FileReader, metadata: ColumnMetadata) -> tuple[int, int, bool] | None:
    """Rows per zone, number of the column buffer, and whether our own writer made the zone map."""
    index = _zone_index(metadata)
    if index is None:
        ours = parse_zone_map_place(file.descriptor.schema.metadata)
        if ours is None or ours.column_buffer >= len(metadata.buffers):
            return None
        return ours.rows_per_zone, ours.column_buffer, True
    reference = index.zone_map_buffer
    if not index.rows_per_zone or reference.buffer_type != _COLUMN_BUFFER:
        raise CorruptFileError("its description is invalid")
    if reference.buffer_index >= len(metadata.buffers):
        raise CorruptFileError("the column does not have this buffer")
    try:
        ours = parse_zone_map_place(file.descriptor.schema.metadata)
    except CorruptFileError:
        ours = None  # not needed: the column itself contains it
    is_ours = ours == ZoneMapPlace(index.rows_per_zone, reference.buffer_index)
    return index.rows_per_zone, reference.buffer_index, is_ours


def _zone_index(metadata: ColumnMetadata) -> encodings_pb2.ZoneIndex | None:
    """The description of the zone map in the column's own encoding, if any."""
    if metadata.encoding.name != COLUMN_ENCODING:
        return None
    try:
        encoding = encodings_pb2.ColumnEncoding.FromString(metadata.encoding.value)
    except DecodeError as error:
        raise CorruptFileError("the encoding of the column cannot be parsed") from error
    return encoding.zone_index if encoding.WhichOneof("column_encoding") == "zone_index" else None


def parse_zone_map(
    data: bytes, zones: int, leaf: Field, path: str
) -> tuple[pa.Array, pa.Array, npt.NDArray[np.int64]]:
    """Minimum, maximum and null count (int64) per zone from the small data file that a zone map is.

    `leaf` is the field that it describes, `path` its file, for errors. CorruptFileError unless there are
    `zones` zones of that type.
    """
    store = MemoryStore()
    store.put(path, data)
    with counting(None):  # these bytes were already counted when they were read from the outer file
        file = FileReader(store, path, size=len(data))
        file.read(0, len(data))  # from here on everything is in memory
    fields = [
        Field("min", 0, NO_PARENT, leaf.logical_type, True),
        Field("max", 1, NO_PARENT, leaf.logical_type, True),
        Field("null_count", 2, NO_PARENT, "uint32", False),
    ]
    builder = FieldBuilder(lambda wanted: (file, wanted.id), zones)
    with file.placed(), counting(None):
        columns = kernels.Columns([builder.build(wanted) for wanted in fields])
        decoded = columns.decode_range(0, zones, [])
    schema = pa.schema([wanted.to_arrow() for wanted in fields])
    minimum, maximum, null_count = pa.RecordBatch._import_from_c(decoded.address, schema).columns
    if null_count.null_count:
        raise CorruptFileError("a null count is null")
    return minimum, maximum, to_numpy(null_count).astype(np.int64)


def _nan_flags(bounds: pa.Array) -> npt.NDArray[np.bool_]:
    single = pc.cast(bounds, pa.float32()) if pa.types.is_float16(bounds.type) else bounds
    nan_flags: npt.NDArray[np.bool_] = to_numpy(pc.fill_null(pc.is_nan(single), False))
    return nan_flags
