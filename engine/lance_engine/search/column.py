"""Vector columns: their types, and their values as memory that kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine import kernels
from lance_engine.errors import InvalidSearchError
from lance_engine.table.snapshot import Snapshot

U8Array = npt.NDArray[np.uint8]

_ELEMENTS: Final[dict[pa.DataType, tuple[kernels.Element, type[np.generic]]]] = {
    pa.float16(): (kernels.Element.FLOAT16, np.float16),
    pa.float32(): (kernels.Element.FLOAT32, np.float32),
    pa.float64(): (kernels.Element.FLOAT64, np.float64),
    pa.int8(): (kernels.Element.INT8, np.int8),
    pa.uint8(): (kernels.Element.UINT8, np.uint8),
}


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """A column whose values are vectors, or with `is_multi` lists of vectors."""

    name: str
    parts: tuple[str, ...]
    field_id: int
    value_type: pa.DataType
    dim: int
    is_multi: bool

    @property
    def element(self) -> kernels.Element:
        """The kernels' name for the type of an element."""
        return _ELEMENTS[self.value_type][0]

    @property
    def dtype(self) -> type[np.generic]:
        """The numpy type of an element."""
        return _ELEMENTS[self.value_type][1]

    @property
    def is_bytes(self) -> bool:
        """Whether elements are single bytes, whose bits may be counted."""
        return bool(at.is_integer(self.value_type))

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector."""
        return self.dim * np.dtype(self.dtype).itemsize

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The column in a batch whose first column contains it."""
        values = batch.column(0)
        return pc.struct_field(values, list(self.parts[1:])) if len(self.parts) > 1 else values


def require_name(name: Any) -> None:
    """InvalidSearchError if a column is not given by name."""
    if not isinstance(name, str):
        raise InvalidSearchError(f"Pass the column by name, not as {name!r}")


def vector_column(snapshot: Snapshot, name: str) -> VectorColumn:
    """The column of this name; InvalidSearchError if its values are not vectors."""
    require_name(name)
    field = snapshot.schema.field(name)
    kind = field.to_arrow().type
    is_multi = at.is_list(kind) or at.is_large_list(kind)
    vector = kind.value_type if is_multi else kind
    if not at.is_fixed_size_list(vector) or vector.value_type not in _ELEMENTS or vector.list_size < 1:
        raise InvalidSearchError(
            f"The column has type {kind}, expected vectors",
            remedy=_remedy(name, kind),
            path=snapshot.uri,
            version=snapshot.version,
            column=name,
        )
    parts = _parts(snapshot, name)
    return VectorColumn(name, parts, field.id, vector.value_type, vector.list_size, is_multi)


def _remedy(name: str, kind: pa.DataType) -> str:
    needs = "Vectors must be fixed-size lists of float16, float32, float64, int8 or uint8"
    if not (at.is_list(kind) or at.is_large_list(kind)) or kind.value_type not in _ELEMENTS:
        return needs
    # What data frames and lists of Python give.
    size = f"with n for the length of your vectors: ds.alter_column({name!r}, type=pa.list_(pa.float32(), n))"
    return f"{needs}. To convert the column, {size}, or ALTER TABLE t ALTER COLUMN {name} TYPE FLOAT[n]"


def _parts(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    return (name,) if name in snapshot.schema.names else tuple(name.split("."))


def vectors_in(array: pa.FixedSizeListArray, column: VectorColumn) -> tuple[U8Array, U8Array | None]:
    """The bytes of the vectors of an array, and a byte per vector that is zero if it is invalid.

    A vector that contains a null is invalid.
    """
    dim, width = column.dim, np.dtype(column.dtype).itemsize
    items = array.values
    begin = items.offset + array.offset * dim
    data = items.buffers()[1]
    count = len(array)
    if data is None:
        return np.zeros(count * dim * width, dtype=np.uint8), np.zeros(count, dtype=np.uint8)
    values = np.frombuffer(data, dtype=np.uint8, count=count * dim * width, offset=begin * width)
    valid: npt.NDArray[Any] | None = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
    if items.null_count:
        whole = items.slice(array.offset * dim, count * dim).is_valid().to_numpy(zero_copy_only=False)
        whole = whole.reshape(count, dim).all(axis=1)
        valid = whole if valid is None else valid & whole
    return values, None if valid is None else valid.view(np.uint8)
