"""What the compressive encodings decode to: values without any idea of nullability or Arrow type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from lance_engine.errors import CorruptFileError

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fixed:
    """Values of one width. `data` is bool[n] for 1-bit values, else uint8[n, bits / 8] (little endian
    rows).
    """

    bits: int
    data: npt.NDArray[np.uint8] | npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.data)

    def integers(self) -> npt.NDArray[np.unsignedinteger]:
        """The values as unsigned integers; only for 8, 16, 32 and 64 bits."""
        if self.bits not in (8, 16, 32, 64):
            raise CorruptFileError(f"{self.bits}-bit values are not integers")
        return np.ascontiguousarray(self.data).view(f"<u{self.bits // 8}").reshape(-1)

    @classmethod
    def from_integers(cls, values: npt.NDArray[np.unsignedinteger]) -> Fixed:
        """Wrap an unsigned integer array of 8, 16, 32 or 64 bits."""
        width = values.dtype.itemsize
        data = np.ascontiguousarray(values.astype(f"<u{width}")).view(np.uint8).reshape(len(values), width)
        return cls(8 * width, data)


@dataclass(frozen=True, slots=True)
class Variable:
    """Strings or binaries."""

    items: list[bytes]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """`count` lists of `dimension` items each; `validity` (bool[count * dimension]) is that of the items."""

    count: int
    dimension: int
    items: Values
    validity: Bools | None

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class Struct:
    """Packed structs: one entry per child, all equally long."""

    count: int
    fields: tuple[Values, ...]

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Unsigned indices into `items`."""

    indices: Fixed
    items: Values

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, slots=True)
class Nulls:
    """Slots without any value."""

    count: int

    def __len__(self) -> int:
        return self.count


Values = Fixed | Variable | FixedSizeList | Struct | Dictionary | Nulls


def concatenate(parts: Sequence[Values]) -> Values:
    """Join the values of consecutive chunks, which all have the shape of the first."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Fixed):
        return Fixed(first.bits, np.concatenate([part.data for part in parts if isinstance(part, Fixed)]))
    if isinstance(first, Variable):
        return Variable([item for part in parts if isinstance(part, Variable) for item in part.items])
    if isinstance(first, FixedSizeList):
        lists = [part for part in parts if isinstance(part, FixedSizeList)]
        validity = [part.validity for part in lists if part.validity is not None]
        return FixedSizeList(
            sum(map(len, lists)),
            first.dimension,
            concatenate([part.items for part in lists]),
            np.concatenate(validity) if validity else None,
        )
    if isinstance(first, Struct):
        structs = [part for part in parts if isinstance(part, Struct)]
        columns = zip(*(part.fields for part in structs), strict=True)
        return Struct(sum(map(len, structs)), tuple(concatenate(column) for column in columns))
    if isinstance(first, Nulls):
        return Nulls(sum(map(len, parts)))
    raise TypeError(f"chunks of {type(first).__name__} are not joined")
