"""BLOOMFILTER (indices, BLOOMFILTER): finds zones of rows that certainly do not contain a value.

``bloomfilter.lance`` has the positions of the zones, ``has_null`` and ``bloom_filter_data``: blocks of eight
32-bit words; a value sets one bit in each word of one block.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine import kernels
from lance_engine.arrow_values import as_integers
from lance_engine.errors import CorruptFileError
from lance_engine.expr.membership import text_hashes
from lance_engine.expr.statistics import ZoneMatch
from lance_engine.expr.tree import And, Column, Comparison, In, Literal, Node, Or
from lance_engine.expr.value_types import is_bytes, is_text
from lance_engine.index.cache import CACHE
from lance_engine.index.files import SegmentFiles, index_errors
from lance_engine.index.kind import IndexOutput, U64Array, ZoneFinderKind, ZoneSource
from lance_engine.index.live_zones import (
    CollectedNulls,
    in_fragments,
    parse_zones,
    rows_per_zone_in,
)

FILE: Final = "bloomfilter.lance"
_ITEMS: Final = "bloomfilter_item"
_PROBABILITY: Final = "bloomfilter_probability"
# What the sizes of filters amount to.
_FALSE_POSITIVES: Final = "0.00057"
_BYTES_PER_ROW: Final = 4
_MIN_BYTES: Final = 32
_MAX_BYTES: Final = 1 << 27
_WORDS: Final = 8
_SALTS: Final = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    dtype=np.uint32,
)
# Filters that are read and cached together.
_GROUP_BYTES: Final = 2 << 20

U32Array = npt.NDArray[np.uint32]


class BloomFilterIndex:
    """An open BLOOMFILTER segment: the positions of the zones in memory, filters read on demand."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        with index_errors(files.segment.name):
            self.file = files.open(FILE)
            self.zones = parse_zones(self.file)
            self.rows_per_zone = rows_per_zone_in(self.file.schema.metadata, _ITEMS)
        expected = _filter_bytes(self.rows_per_zone)
        self._group = max(1, _GROUP_BYTES // expected)

    @property
    def nbytes(self) -> int:
        return 24 * len(self.zones) + 1024

    @property
    def value_type(self) -> pa.DataType | None:
        return None

    @property
    def statistics(self) -> Mapping[str, int]:
        return {"zones": len(self.zones), "rows_per_zone": self.rows_per_zone}

    def match(self, node: Node) -> ZoneMatch | None:
        wanted = equal_to(node)
        if wanted is None or _has_nan(wanted):
            return None
        hashes = _hashes(_probed(wanted))
        parts = [_probe(self._filters(first), hashes) for first in range(0, len(self.zones), self._group)]
        may = np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)
        return ZoneMatch(may, np.zeros(len(may), dtype=np.bool_))

    def _filters(self, first: int) -> list[U32Array]:
        """The filters of a group of zones; consecutive ones of the same size as one array."""
        return CACHE.get(
            (self._files.key, first),
            lambda: self._read(first),
            lambda arrays: sum(array.nbytes for array in arrays),
        )

    def _read(self, first: int) -> list[U32Array]:
        with index_errors(self._files.segment.name):
            end = min(first + self._group, len(self.zones))
            data = self.file.read(["bloom_filter_data"], first, end).column(0)
            ends = np.frombuffer(data.buffers()[1], dtype=np.int32)[data.offset : data.offset + len(data) + 1]
            sizes = np.diff(ends)
            if ((sizes <= 0) | (sizes % (4 * _WORDS) != 0)).any():
                raise CorruptFileError("A filter does not consist of blocks", path=self.file.path)
            raw = np.frombuffer(data.buffers()[2], dtype=np.uint8)
            borders = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]
            return [
                raw[ends[begin] : ends[stop]].copy().view(np.uint32).reshape(stop - begin, -1, _WORDS)
                for begin, stop in itertools.pairwise(borders)
            ]


def equal_to(node: Node) -> pa.Array | None:
    """The values that the column must equal for `node` to be true; None if unknown."""
    match node:
        case Comparison("=", Column(), Literal(value)):
            return pa.array([], value.type) if not value.is_valid else pa.repeat(value, 1)
        case In(Column()):
            return node.values
        case And(operands):
            return next((values for values in map(equal_to, operands) if values is not None), None)
        case Or(operands):
            parts = [equal_to(operand) for operand in operands]
            return None if any(part is None for part in parts) else pa.concat_arrays(parts)
    return None


def supports(kind: pa.DataType) -> bool:
    """Whether the hash of this column type is the same in all implementations."""
    return bool(
        at.is_integer(kind)
        or at.is_float32(kind)
        or at.is_float64(kind)
        or is_text(kind)
        or is_bytes(kind)
        or at.is_date(kind)
        or at.is_timestamp(kind)
    )


def build(source: ZoneSource, output: IndexOutput) -> bytes:
    """Write the file of a segment: filters of existing segments, restricted to fragments, and new ones."""
    size = _filter_bytes(source.rows_per_zone)
    schema = pa.schema(
        [
            pa.field("fragment_id", pa.uint64(), False),
            pa.field("zone_start", pa.uint64(), False),
            pa.field("zone_length", pa.uint64(), False),
            pa.field("has_null", pa.bool_(), False),
            pa.field("bloom_filter_data", pa.binary(), False),
        ]
    )
    file = output.create(FILE, schema)
    nulls = CollectedNulls()
    for index, fragments in source.carried:
        assert isinstance(index, BloomFilterIndex)
        _carry_over(index, fragments, file.write)
        nulls.carry_over(index.file, fragments)
    for zone in source.zones:
        filled = np.zeros((size // (4 * _WORDS), _WORDS), dtype=np.uint32)
        _insert(filled, _hashes(zone.values.drop_null()))
        nulls.add(zone)
        has_null = zone.values.null_count > 0
        row = [zone.fragment_id, zone.start, zone.end - zone.start, has_null, filled.tobytes()]
        columns = [pa.array([value], field.type) for value, field in zip(row, schema, strict=True)]
        file.write(pa.RecordBatch.from_arrays(columns, schema=schema))
    metadata = {_ITEMS: str(source.rows_per_zone), _PROBABILITY: _FALSE_POSITIVES}
    place, buffers = nulls.stored()
    file.finish(metadata | place, buffers)
    return b""


def _carry_over(index: BloomFilterIndex, fragments: frozenset[int], write: Any) -> None:
    """Copy the filters of some fragments."""
    names = ["fragment_id", "zone_start", "zone_length", "has_null", "bloom_filter_data"]
    wanted = np.flatnonzero(in_fragments(index.zones, fragments).to_numpy(zero_copy_only=False))
    for start in range(0, len(wanted), 64):
        write(index.file.read_rows(names, wanted[start : start + 64].astype(np.uint32)))


def _filter_bytes(rows: int) -> int:
    return min(_MAX_BYTES, max(_MIN_BYTES, 1 << (rows * _BYTES_PER_ROW - 1).bit_length()))


def _probed(values: pa.Array) -> pa.Array:
    """The values to look for: zero has two representations, which are equal and hash differently."""
    if not at.is_floating(values.type):
        return values
    zeros = values.filter(pc.equal(values, pa.scalar(0.0, values.type)))
    return pa.concat_arrays([values, pc.negate(zeros)]) if len(zeros) else values


def _has_nan(values: pa.Array) -> bool:
    # There are many NaN values, each with a different hash.
    return at.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py() is True


def _hashes(values: pa.Array) -> U64Array:
    """The hash of each value; there are no nulls."""
    kind = values.type
    if is_text(kind) or is_bytes(kind):
        return text_hashes(values)
    width = kind.bit_width // 8
    if at.is_temporal(kind):
        values = as_integers(values)
    held = np.ascontiguousarray(values.to_numpy(zero_copy_only=False))
    return kernels.xxhash64(held.view(np.uint8), np.arange(len(held) + 1, dtype=np.int64) * width)


def _places(hashes: U64Array, blocks: int) -> tuple[npt.NDArray[np.int64], U32Array]:
    """The block of each hash, and the bit in each of its words."""
    block = ((hashes >> np.uint64(32)) * np.uint64(blocks)) >> np.uint64(32)
    key = hashes.astype(np.uint32)
    bits = (key[:, None] * _SALTS[None, :]) >> np.uint32(27)
    return block.astype(np.int64), np.left_shift(np.uint32(1), bits)


def _insert(filled: U32Array, hashes: U64Array) -> None:
    block, bits = _places(hashes, len(filled))
    np.bitwise_or.at(filled, block, bits)


def _probe(groups: list[U32Array], hashes: U64Array) -> npt.NDArray[np.bool_]:
    """For every filter, whether it may contain any of the values."""
    may_match = []
    for filters in groups:
        block, bits = _places(hashes, filters.shape[1])
        may = np.zeros(len(filters), dtype=np.bool_)
        for number in range(len(hashes)):
            may |= ((filters[:, block[number]] & bits[number]) == bits[number]).all(axis=1)
        may_match.append(may)
    return np.concatenate(may_match)


BLOOMFILTER: Final = ZoneFinderKind(
    name="bloomfilter",
    message="BloomFilter",
    newest=0,
    supports=supports,
    open=BloomFilterIndex,
    build=build,
)
