"""Types of the native module.

Encoders take buffers as anything with the buffer protocol and give uint8 arrays.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
# Dimension, validity of the items or None, first bit of it; outermost layer first.
_ListLayers = list[tuple[int, Any, int]]

class CorruptDataError(ValueError):
    """Bytes that contradict themselves; `args` is (what, column, page number, encoding).

    All but the first may be None. The encoding is told where the description of a page is at fault: from the
    outermost to the innermost one.
    """

class NotResidentError(LookupError):
    """A range of a file was needed that nobody fetched; `args` is (source identity, offset, length, lasting).

    `lasting` says that later batches will need it as well.
    """

class UnsupportedError(ValueError):
    """Something that the kernels do not know; `args` is (what, page number, encoding, missing).

    All but the first may be None; `missing` names an encoding that as a whole has no decoder.
    """

class BatchTooLargeError(OverflowError):
    """More bytes of strings, or more list items, than 32-bit offsets can address: ask for fewer rows."""

class InvalidJsonError(ValueError):
    """A JSON value that is none; `args` is (what, number of the value in the column)."""

# ---- sources: the bytes of a file, as far as they are in memory ---------------------------------------

class Source:
    @property
    def size(self) -> int: ...
    @property
    def identity(self) -> int: ...
    def read(self, offset: int, length: int) -> bytes: ...

class MappedSource(Source):
    @staticmethod
    def open(path: str) -> MappedSource: ...

class SegmentSource(Source):
    def __init__(self, size_or_parent: int | SegmentSource) -> None: ...
    def add(self, offset: int, data: bytes) -> None: ...
    def share(self, offset: int, data: bytes | memoryview) -> None: ...
    def holds(self, offset: int, length: int) -> bool: ...

# ---- pages ---------------------------------------------------------------------------------------------

class Page:
    @property
    def rows(self) -> int: ...

# Number, name and bytes of the message, rows, buffers and priority of a page whose encoding is none of the
# format; None where nobody can open it.
_Custom = Callable[[int, str, bytes, int, list[tuple[int, int]], int], Page | None]
# Rows, offsets, adjustment of nulls, number of items.
ListPage = tuple[int, ArrayDecoder, int, int]

def column_pages(source: Source, offset: int, length: int, custom: _Custom) -> list[Page]:
    """The pages that the metadata of a column of version 2.1 or 2.2 describe; UnsupportedError."""

def array_pages(
    source: Source,
    offset: int,
    length: int,
    kind: str,
    width: int,
    is_dictionary: bool,
    is_blob: bool,
    custom: _Custom,
) -> list[Page]:
    """The same for version 2.0 and values of `kind` and `width`."""

def list_pages(source: Source, offset: int, length: int) -> list[ListPage]:
    """The same for a column of version 2.0 that holds the offsets of lists."""

def array_column_kind(source: Source, offset: int, length: int) -> str | None:
    """The name of the outermost encoding of a column of version 2.0; None where it has no pages."""

def describe_page(name: str, message: bytes) -> str:
    """What a page holds in one line; `name` where it is no message of the format."""

class BlockDecoder:
    def decode(self, data: bytes, count: int) -> bytes: ...

def block_decoder(encoding: bytes) -> BlockDecoder:
    """The decoder of a whole buffer that a `CompressiveEncoding` message describes."""

# ---- arrays of version 2.0 -----------------------------------------------------------------------------

class ArrayDecoder: ...

def array_flat(buffer: tuple[int, int], bits_per_value: int, compression: str) -> ArrayDecoder: ...
def array_all_null() -> ArrayDecoder: ...
def array_nullable(validity: ArrayDecoder, values: ArrayDecoder) -> ArrayDecoder: ...
def array_fixed_size_list(dimension: int, items: ArrayDecoder) -> ArrayDecoder: ...
def array_dictionary(
    *,
    indices: ArrayDecoder,
    index_width: int,
    items: ArrayDecoder,
    count: int,
    shifted: bool,
    kind: str,
    width: int,
) -> ArrayDecoder: ...
def array_page(rows: int, decoder: ArrayDecoder, buffers: Sequence[tuple[int, int]] = ()) -> Page: ...
def array_struct_field(children: Sequence[Field]) -> Field: ...
def array_list_field(
    name: str,
    pages: Sequence[ListPage],
    source: Source,
    items: Field,
    large: bool,
) -> Field: ...
def array_string_field(lists: Field) -> Field: ...

# ---- array encodings of 0.1 ----------------------------------------------------------------------------

def legacy_var_binary(positions: tuple[int, int], empty_is_null: bool) -> ArrayDecoder: ...
def legacy_list_ends(offsets: tuple[int, int], bits: int) -> ArrayDecoder: ...

# ---- columns -------------------------------------------------------------------------------------------

class LeafColumn:
    @property
    def rows(self) -> int: ...
    @property
    def gives_codes(self) -> bool: ...
    @property
    def page_starts(self) -> list[int]: ...
    @property
    def value_bytes(self) -> int: ...
    @property
    def name(self) -> str: ...
    def metadata_ranges(self, rows: npt.NDArray[np.int64]) -> list[tuple[int, int]]: ...
    def data_ranges(self, rows: npt.NDArray[np.int64]) -> list[tuple[int, int]]: ...
    @property
    def page_buffers(self) -> list[list[tuple[int, int]]]: ...

def leaf_column(
    *,
    name: str,
    kind: str,
    width: int,
    dims: Sequence[int],
    path: Sequence[str],
    pages: Sequence[Page],
    source: Source,
) -> LeafColumn: ...

class DataFiles:
    """Local files of version 2.1 or 2.2 with the same columns, as if one followed the other.

    Raises CorruptDataError, UnsupportedError, or RuntimeError where a file cannot be opened.
    """

    def __init__(self, places: Sequence[tuple[str, int, int]]) -> None:
        """Map files: path, size in bytes or 0 where it is not known, number of rows."""

    def leaf_column(
        self,
        name: str,
        kind: str,
        width: int,
        dims: Sequence[int],
        path: Sequence[str],
        column: int,
        per_row: int,
    ) -> tuple[LeafColumn, int]:
        """A column of all files, whose rows have `per_row` items each, and the bytes read for it."""

class Node: ...

def leaf_node(leaf: LeafColumn, packed: Sequence[tuple[str, int, Sequence[int]]] = ...) -> Node: ...
def struct_node(children: Sequence[Node]) -> Node: ...
def list_node(child: Node, large: bool) -> Node: ...
def fixed_size_list_node(child: Node, dimension: int) -> Node: ...

class Field:
    def tested(self, test: ValueTest) -> Field | None: ...

def structural_field(root: Node, coded: bool = ...) -> Field: ...

class ValueTest: ...

def integer_range_test(bits: int, signed_: bool, low: bytes, high: bytes, negate: bool) -> ValueTest: ...
def integer_remainder_test(
    bits: int, signed_: bool, divisor: int, low: int, high: int, negate: bool
) -> ValueTest: ...
def integer_set_test(bits: int, values: bytes, negate: bool) -> ValueTest: ...
def float_range_test(bits: int, low: float, high: float, nan: bool, negate: bool) -> ValueTest: ...
def string_test(pieces: Sequence[bytes], at_start: bool, at_end: bool, negate: bool) -> ValueTest: ...
def string_set_test(values: Sequence[bytes], negate: bool) -> ValueTest: ...

class DecodedBatch:
    @property
    def address(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...

class Columns:
    def __init__(self, fields: Sequence[Field]) -> None: ...
    def narrowed(self, indices: Sequence[int]) -> Columns: ...
    def decode_range(
        self, begin: int, end: int, overlays: Sequence[tuple[Source, Source]] = ...
    ) -> DecodedBatch: ...
    def decode_ranges(
        self, ranges: npt.NDArray[np.int64], overlays: Sequence[tuple[Source, Source]] = ...
    ) -> DecodedBatch: ...
    def decode_rows(
        self, rows: npt.NDArray[np.uint32], overlays: Sequence[tuple[Source, Source]] = ...
    ) -> DecodedBatch: ...

# ---- hashes --------------------------------------------------------------------------------------------

def decode_jsonb(data: _Bytes, offsets: npt.NDArray[np.int64], valid: _Bytes | None) -> tuple[_Bytes, _Bytes]:
    """Bytes and int32 offsets of the texts of binary JSON values; InvalidJsonError, BatchTooLargeError."""

def encode_jsonb(data: _Bytes, offsets: npt.NDArray[np.int64], valid: _Bytes | None) -> tuple[_Bytes, _Bytes]:
    """Bytes and int64 offsets of the binary values of JSON texts; InvalidJsonError."""

def xxhash64(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]: ...

# ---- messages ---------------------------------------------------------------------------------------------

def split_message(message: bytes, number: int) -> tuple[bytes, bytes]:
    """The fields of a serialised message with this number and a length, and all others, in order."""

def fragment_summaries(message: bytes) -> npt.NDArray[np.uint64]:
    """Shape (5, fragments) of a message whose fields are all fragments.

    The rows: size of the field, id, physical rows, deleted rows, and flags (1: has a deletion file, 2: has
    spilled row lineage).
    """

# ---- streams ---------------------------------------------------------------------------------------------

def batch_stream(
    ranges: Any,
    schema: Any,
    batch_rows: int,
    row_bytes: int,
    read_ahead: int,
    threads: int,  # 0: the consumer does all the work
    skip: int = ...,
    limit: int | None = ...,
) -> object: ...
def stop_streams() -> None: ...

# ---- memory and instruction sets -----------------------------------------------------------------------

def unpack_block(packed: bytes, bits: int, width: int, level: str) -> bytes: ...
def simd_level() -> str: ...
def simd_levels() -> list[str]: ...
def cached_bytes() -> int: ...
def set_cache_limit(bytes: int, most: int) -> None: ...

# ---- encode: levels ----------------------------------------------------------------------------------

class Levels:
    rows: int
    entries: int
    slots: int
    valid_slots: int
    max_rep: int
    max_def: int
    longest_row: int
    longest_invisible_run: int
    budget: int
    layers: list[int]
    null_layers: list[bool]
    rep: _Bytes
    def_: _Bytes
    def null_slots(self) -> _Bytes: ...

class LevelBuilder:
    def __init__(self, rows: int) -> None: ...
    def clone(self) -> LevelBuilder: ...
    def add_item(self, validity: Any, offset: int, count: int) -> None: ...
    def add_fixed_size_list(self, validity: Any, offset: int, count: int, dimension: int) -> None: ...
    def add_list(
        self, validity: Any, offsets: Any, offset_bits: int, offset: int, count: int, child_count: int
    ) -> tuple[int, int, _Bytes | None]: ...
    def finish(self) -> Levels: ...

# ---- encode: values of mini-block pages --------------------------------------------------------------

class MiniBlockValues:
    count: int
    buffers: int
    def chunk_length(self, start: int) -> int: ...

class _FixedValues(MiniBlockValues):
    def __init__(self, values: Any, bits: int, offset: int, count: int) -> None: ...

class FlatValues(MiniBlockValues):
    def __init__(self, values: Any, bits: int, offset: int, count: int, chunk_bytes: int = ...) -> None: ...

class BitpackedValues(_FixedValues): ...
class RunLengthValues(_FixedValues): ...
class ByteStreamSplitValues(_FixedValues): ...

class VariableInput:
    count: int
    offset_bits: int
    total_bytes: int
    longest: int
    def __init__(
        self, offsets: Any, data: Any, offset_bits: int, offset: int, count: int, levels: Levels | None
    ) -> None: ...

class VariableValues(MiniBlockValues):
    def __init__(self, values: VariableInput, chunk_bytes: int = ...) -> None: ...

class FixedSizeListValues(MiniBlockValues):
    def __init__(self, layers: _ListLayers, items: Any, item_bits: int, offset: int, count: int) -> None: ...

class Scheme(Enum):
    LZ4 = 1
    ZSTD = 2

class CompressedValues(MiniBlockValues):
    def __init__(self, values: MiniBlockValues, scheme: Scheme, level: int) -> None: ...

# ---- encode: pages -----------------------------------------------------------------------------------

class LevelEncoding:
    present: bool
    packed: bool
    width: int

class MiniBlockPage:
    rep: LevelEncoding
    def_: LevelEncoding
    chunks: int
    data_size: int
    def take_chunk_metadata(self) -> _Bytes: ...
    def take_chunk_data(self) -> _Bytes: ...
    def take_repetition_index(self) -> _Bytes: ...

class FullZipPage:
    bits_rep: int
    bits_def: int
    def take_data(self) -> _Bytes: ...
    def take_repetition_index(self) -> _Bytes: ...

class FsstCoder:
    @staticmethod
    def train(values: VariableInput) -> FsstCoder | None: ...
    @property
    def share(self) -> float: ...
    def encode(self, values: VariableInput) -> VariableInput: ...
    def symbol_table(self) -> _Bytes: ...

class DictionaryPage:
    num_items: int
    def take_indices(self) -> _Bytes: ...
    def take_items(self) -> _Bytes: ...

def encode_mini_block(values: MiniBlockValues, levels: Levels, large_chunks: bool) -> MiniBlockPage: ...
def encode_full_zip_fixed(
    values: Any, bits: int, offset: int, count: int, layers: _ListLayers, levels: Levels
) -> FullZipPage: ...
def encode_full_zip_variable(values: VariableInput, levels: Levels) -> FullZipPage: ...
def pack_rows(fields: Sequence[VariableInput | tuple[Any, int, int]], count: int) -> VariableInput: ...
def compress_block(plain: Any, scheme: Scheme, level: int) -> _Bytes: ...
def compress_each(
    values: VariableInput, scheme: Scheme, level: int, saving: float
) -> VariableInput | None: ...
def estimated_bytes(values: MiniBlockValues, chunks: int) -> int: ...
def integer_statistics(values: Any, bits: int, offset: int, count: int) -> tuple[int, int]: ...
def fill_nulls(values: Any, bits: int, offset: int, levels: Levels) -> _Bytes: ...
def build_variable_dictionary(
    values: VariableInput, max_items: int, max_bytes: int
) -> DictionaryPage | None: ...
def build_fixed_dictionary(
    values: Any, bits: int, offset: int, count: int, max_items: int, max_bytes: int
) -> DictionaryPage | None: ...

# ---- encode: zones -----------------------------------------------------------------------------------

class ZoneKind(Enum):
    BOOL = 0
    SIGNED = 1
    UNSIGNED = 2
    FLOAT = 3
    TEXT = 4
    BYTES = 5

class ZoneStatistics:
    """Minimum, maximum and null count per zone of `zone_rows` rows, from row `first_row` of a column on.

    `width` is that of a value in bytes: 1 for BOOL, 0 for TEXT and BYTES.
    """

    zones: int
    rows: int
    def __init__(self, kind: ZoneKind, width: int, zone_rows: int, first_row: int) -> None: ...
    def add_fixed(self, values: Any, offset: int, levels: Levels) -> None: ...
    def add_variable(self, values: VariableInput, levels: Levels) -> None: ...
    def append(self, next: ZoneStatistics) -> None: ...
    def bounds(self, upper: bool) -> tuple[_Bytes, _Bytes, _Bytes]:
        """Per zone whether the bound is known (one byte) and where it ends in the data (uint64); the data."""

    def null_counts(self) -> _Bytes:
        """Per zone (uint32)."""

# ---- search: nearest vectors -------------------------------------------------------------------------

class Metric(Enum):
    L2 = 0
    COSINE = 1
    DOT = 2
    HAMMING = 3

class Element(Enum):
    FLOAT16 = 0
    FLOAT32 = 1
    FLOAT64 = 2
    INT8 = 3
    UINT8 = 4

class VectorQuery:
    """Query vectors; `values` are the bytes of floats, of doubles for FLOAT64, of bytes for HAMMING."""

    count: int
    def __init__(self, metric: Metric, element: Element, dim: int, values: _Bytes) -> None: ...
    def distances(self, vectors: _Bytes) -> npt.NDArray[np.float32]:
        """Of every query (rows) to every stored vector (columns)."""

class Nearest:
    """The `k` nearest rows of several queries with lower <= distance < upper; ties go to the lower row id."""

    def __init__(self, queries: int, k: int, lower: float, upper: float) -> None: ...
    def scan(
        self,
        query: VectorQuery,
        first: int,
        vectors: _Bytes,
        ids: npt.NDArray[np.uint64],
        valid: _Bytes | None,
    ) -> None:
        """Offer rows to the queries from number `first` on; `valid` has a zero for rows that are left out."""

    def offer(self, query: int, distances: npt.NDArray[np.float32], ids: npt.NDArray[np.uint64]) -> None: ...
    def search(
        self,
        query_number: int,
        partitions: Sequence[Partition],
        query: npt.NDArray[np.float32],
        allowed: RowSet,
        few: bool,
        ef: int,
    ) -> None:
        """Offer the rows of partitions; see the classes."""

    def found(self, query: int) -> int:
        """How many rows there are, up to k."""

    def merge(self, other: Nearest) -> None: ...
    def result(
        self,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.float32]]:
        """Query numbers, row ids and distances: by query, then nearest first."""

class RowSet:
    """Row ids as ascending disjoint ranges [first, end); its length is the number of ids."""

    def __init__(self, firsts: npt.NDArray[np.uint64], ends: npt.NDArray[np.uint64]) -> None: ...
    def __len__(self) -> int: ...
    def contains(self, row: int) -> bool: ...

class Codebook:
    """Centroids of parts of vectors: [parts][1 << bits][dim / parts]."""

    def __init__(
        self, metric: Metric, dim: int, parts: int, bits: int, values: npt.NDArray[np.float32]
    ) -> None: ...

class Rotation:
    """A rotation by sign changes and transforms, or by a matrix; the other one is empty."""

    def __init__(self, dim: int, signs: _Bytes, matrix: npt.NDArray[np.float32]) -> None: ...
    def apply(self, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]: ...

class Partition:
    """Rows of one partition of an index; keeps the arrays it is made of. ValueError if these do not fit."""

    rows: int
    @staticmethod
    def flat(
        metric: Metric, element: Element, dim: int, ids: npt.NDArray[np.uint64], vectors: _Bytes
    ) -> Partition: ...
    @staticmethod
    def scalar(
        metric: Metric, dim: int, low: float, high: float, ids: npt.NDArray[np.uint64], codes: _Bytes
    ) -> Partition: ...
    @staticmethod
    def product(
        codebook: Codebook,
        centroid: npt.NDArray[np.float32],
        ids: npt.NDArray[np.uint64],
        codes: _Bytes,
        transposed: bool,
        by_row: bool,
    ) -> Partition: ...
    @staticmethod
    def rotated(
        metric: Metric,
        rotation: Rotation,
        centroid: npt.NDArray[np.float32],
        ids: npt.NDArray[np.uint64],
        bits: int,
        first_bits: _Bytes,
        packed: bool,
        other_bits: _Bytes,
        add: npt.NDArray[np.float32],
        scale: npt.NDArray[np.float32],
    ) -> Partition: ...
    def set_graph(
        self,
        entry: int,
        level_ends: npt.NDArray[np.uint64],
        ids: npt.NDArray[np.uint32],
        offsets: npt.NDArray[np.int32],
        neighbours: npt.NDArray[np.uint32],
    ) -> None: ...
