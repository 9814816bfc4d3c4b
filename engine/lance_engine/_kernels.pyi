"""Types of the native module. Buffers go in as anything with the buffer protocol, results are uint8 arrays."""

from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
# Dimension, validity of the items or None, first bit of it; outermost layer first.
_ListLayers = list[tuple[int, Any, int]]

class CorruptDataError(ValueError): ...
class NotResidentError(LookupError): ...

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
    rep: _Bytes
    def_: _Bytes
    def null_slots(self) -> _Bytes: ...

class LevelBuilder:
    def __init__(self, rows: int) -> None: ...
    def clone(self) -> LevelBuilder: ...
    def add_item(self, validity: Any, offset: int, count: int) -> None: ...
    def add_list(
        self, validity: Any, offsets: Any, offset_bits: int, offset: int, count: int, child_count: int
    ) -> tuple[int, int, _Bytes | None]: ...
    def finish(self) -> Levels: ...

# ---- encode: values of mini-block pages --------------------------------------------------------------

class MiniBlockValues:
    count: int
    buffers: int

class _FixedValues(MiniBlockValues):
    def __init__(self, values: Any, bits: int, offset: int, count: int) -> None: ...

class FlatValues(_FixedValues): ...
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
    def __init__(self, values: VariableInput) -> None: ...

class FixedSizeListValues(MiniBlockValues):
    def __init__(
        self, layers: _ListLayers, items: Any, item_bits: int, offset: int, count: int
    ) -> None: ...

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

class DictionaryPage:
    num_items: int
    def take_indices(self) -> _Bytes: ...
    def take_items(self) -> _Bytes: ...

def encode_mini_block(values: MiniBlockValues, levels: Levels, large_chunks: bool) -> MiniBlockPage: ...
def encode_full_zip_fixed(
    values: Any, bits: int, offset: int, count: int, layers: _ListLayers, levels: Levels
) -> FullZipPage: ...
def encode_full_zip_variable(values: VariableInput, levels: Levels) -> FullZipPage: ...
def integer_statistics(values: Any, bits: int, offset: int, count: int) -> tuple[int, int]: ...
def fill_nulls(values: Any, bits: int, offset: int, levels: Levels) -> _Bytes: ...
def build_variable_dictionary(
    values: VariableInput, max_items: int, max_bytes: int
) -> DictionaryPage | None: ...
def build_fixed_dictionary(
    values: Any, bits: int, offset: int, count: int, max_items: int, max_bytes: int
) -> DictionaryPage | None: ...
