"""Hypothesis strategies for data files with random but legal layouts, levels and encodings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import handmade_files as handmade
import numpy as np
import pyarrow as pa
from corpus import Mix, one_column, random_array
from handmade_files import Chunk, Encoded, Page
from hypothesis import strategies as st
from lance_engine.format.pb import encodings21_pb2 as pb
from reference import mini_block
from reference.levels import (
    Items,
    Layer,
    LevelArrays,
    Lists,
    Slots,
    choose_layers,
    ravel,
    visible,
)

INTEGERS = {8: pa.int8(), 16: pa.uint16(), 32: pa.int32(), 64: pa.uint64()}
STRINGS = {32: pa.string(), 64: pa.large_string()}
VECTOR = pa.list_(pa.float32(), 3)
MIXES = [Mix(""), Mix("", 0.3, 0.3, 0.3), Mix("", 0.05, 0.0), Mix("", 0.0, 0.5), Mix("", 0.9, 0.5, 0.9)]


@dataclass(frozen=True)
class RandomFile:
    """A file of the one column `value`, its contents and how it was made."""

    data: bytes
    table: pa.Table
    notes: tuple[str, ...]


def slots_of(array: pa.Array) -> tuple[list[Slots], list[Layer], pa.Array]:
    """The slots of an array of single-child structs and lists, the layers they need, and the compacted leaf.

    All leaf first. A slot below a null is null. Only for a list it then counts as one: pylance 14 misreads
    full-zip pages that declare a list layer without nulls below a null struct.
    """
    slots: list[Slots] = []
    reachable: list[Slots] = []
    alive = np.ones(len(array), np.bool_)
    while not pa.types.is_fixed_size_list(array.type) and pa.types.is_nested(array.type):
        valid = array.is_valid().to_numpy(False)
        if pa.types.is_struct(array.type):
            reachable.append(Items(int(alive.sum()), valid[alive]))
            alive = alive & valid
            slots.append(Items(len(array), alive))
            array = array.field(0)
            continue
        offsets = array.offsets.to_numpy().astype(np.int64)
        lengths = np.where(alive & valid, np.diff(offsets), 0)
        slots.append(Lists(np.concatenate([[0], lengths]).cumsum(), alive & valid))
        reachable.append(slots[-1])
        kept = [np.arange(start, start + length) for start, length in zip(offsets[:-1], lengths, strict=True)]
        array = array.values.take(pa.array(np.concatenate([np.empty(0, np.int64), *kept])))
        alive = np.ones(len(array), np.bool_)
    valid = array.is_valid().to_numpy(False)
    reachable.append(Items(int(alive.sum()), valid[alive]))
    slots.append(Items(len(array), alive & valid))
    return slots[::-1], choose_layers(reachable[::-1]), array


def _fixed_values(leaf: pa.Array) -> np.ndarray[Any, np.dtype[Any]]:
    if pa.types.is_boolean(leaf.type):
        return np.array(leaf.fill_null(False).to_numpy(False), np.bool_)
    bits = leaf.type.bit_width
    raw = leaf.buffers()[1]
    return np.frombuffer(raw, f"<u{bits // 8}")[leaf.offset : leaf.offset + len(leaf)]


def _byte_values(leaf: pa.Array) -> list[bytes]:
    return [b"" if value is None else value for value in leaf.cast(pa.large_binary()).to_pylist()]


def _fixed_encoders(draw: Any, bits: int, longest: int) -> tuple[str, Callable[[Any], Encoded]]:
    """An encoder for the fixed-width values of all chunks of a page, each at most `longest` values long."""
    kinds = ["flat"]
    if bits > 1:
        kinds += ["rle"] + (["inline_bitpacking"] if longest <= 1024 else [])
    if bits in (32, 64):
        kinds.append("byte_stream_split")
    kind = draw(st.sampled_from(kinds))
    encode: Callable[[Any], Encoded] = getattr(handmade, kind)
    return _maybe_general(draw, kind, encode)


def _maybe_general(
    draw: Any, kind: str, encode: Callable[..., Encoded]
) -> tuple[str, Callable[..., Encoded]]:
    scheme = draw(st.sampled_from(["", "lz4", "zstd"]))
    if not scheme:
        return kind, encode
    return f"{scheme}({kind})", lambda *values: handmade.general(encode(*values), scheme)


def _vector_chunk(leaf: pa.Array) -> Encoded:
    items = leaf.values.slice(leaf.offset * 3, len(leaf) * 3)
    validity = np.packbits(items.is_valid().to_numpy(False), bitorder="little").tobytes()
    lists = pb.FixedSizeList(items_per_value=3, values=handmade.flat_encoding(32), has_validity=True)
    data = items.fill_null(0.0).to_numpy().astype("<f4").tobytes()
    return Encoded(pb.CompressiveEncoding(fixed_size_list=lists), [validity, data])


def _level_encoder(draw: Any, levels: Any, longest: int) -> tuple[str, Callable[[Any], Encoded]]:
    kinds = ["flat", "rle_block", "out_of_line", "out_of_line raw"]
    if longest <= 1024:
        kinds.append("inline_bitpacking")
    kind = draw(st.sampled_from(kinds))
    if kind.startswith("out_of_line"):
        width = int(levels.max(initial=0)).bit_length()
        raw_tail = kind.endswith("raw")
        return kind, lambda part: handmade.out_of_line_bitpacking(part, width, raw_tail)
    encode: Callable[[Any], Encoded] = getattr(handmade, kind)
    if kind == "flat" and draw(st.booleans()):
        return "zstd(flat)", lambda part: handmade.general(encode(part), "zstd")
    return kind, encode


def _level_arrays(draw: Any, slots: list[Slots], layers: list[Layer]) -> LevelArrays:
    if draw(st.booleans()):
        layers = [Layer.NULL_AND_EMPTY_LIST if layer.is_list else Layer.NULLABLE_ITEM for layer in layers]
    return ravel(slots, layers)


def _chunk_sizes(draw: Any, count: int, large: bool) -> list[int]:
    sizes = []
    biggest = 11 if large else 10
    while count:
        size = 1 << draw(st.integers(1, biggest)) if count > 40 else count
        if draw(st.integers(0, 3)) == 0 and count < 1 << biggest:
            size = count
        sizes.append(min(size, count) if size >= count or (len(sizes) > 8 and count < 1024) else size)
        count -= sizes[-1]
    return sizes


def _mini_block_page(draw: Any, array: pa.Array, large: bool, notes: list[str]) -> Page | None:
    slots, layers, leaf = slots_of(array)
    arrays = _level_arrays(draw, slots, layers)
    if len(leaf) == 0:
        return None
    sizes = _chunk_sizes(draw, len(leaf), large)
    cuts = handmade.cut_levels(arrays, sizes)
    longest = max(cut.stop - cut.start for cut in cuts)
    encoded_levels: list[list[Encoded | None]] = []
    for levels in (arrays.repetition, arrays.definition):
        if levels is None:
            encoded_levels.append([None] * len(cuts))
            continue
        kind, encode = _level_encoder(draw, levels, longest)
        notes.append(f"levels {kind}")
        encoded_levels.append([encode(levels[cut]) for cut in cuts])
    dictionary = None
    values: Any = leaf
    encode_values: Callable[[Any], Encoded]
    if pa.types.is_fixed_size_list(leaf.type):
        kind, encode_values = _maybe_general(draw, "vector", _vector_chunk)
    elif not pa.types.is_boolean(leaf.type) and draw(st.integers(0, 3)) == 0:
        dictionary, values = _dictionary(draw, leaf, notes)
        kind, encode_values = _fixed_encoders(draw, values.dtype.itemsize * 8, max(sizes))
    elif leaf.type in STRINGS.values():
        values = _byte_values(leaf)
        offset_bits = next(bits for bits, each in STRINGS.items() if each == leaf.type)
        name = draw(st.sampled_from(["variable", "fsst"]))
        encode_strings = getattr(handmade, name)
        kind, encode_values = _maybe_general(draw, name, lambda part: encode_strings(part, offset_bits))
    else:
        values = _fixed_values(leaf)
        bits = 1 if values.dtype == np.bool_ else values.dtype.itemsize * 8
        kind, encode_values = _fixed_encoders(draw, bits, max(sizes))
    notes.append(f"{kind}, chunks of {sizes}")
    chunks = []
    start = 0
    for number, (size, cut) in enumerate(zip(sizes, cuts, strict=True)):
        part = values.slice(start, size) if isinstance(values, pa.Array) else values[start : start + size]
        repetition, definition = encoded_levels[0][number], encoded_levels[1][number]
        chunks.append(Chunk(size, cut.stop - cut.start, repetition, definition, encode_values(part)))
        start += size
    index = None
    if arrays.repetition is not None:
        index = mini_block.repetition_index(arrays, [cut.stop - cut.start for cut in cuts]).tobytes()
    return handmade.mini_block(arrays, len(array), chunks, large, index, dictionary)


def _dictionary(draw: Any, leaf: pa.Array, notes: list[str]) -> tuple[tuple[Encoded, int], Any]:
    encoded = leaf.dictionary_encode()
    items = encoded.dictionary
    if len(items) == 0:
        items = pa.array([b"x" if leaf.type in STRINGS.values() else 0]).cast(leaf.type)
    width = draw(st.sampled_from([each for each in (8, 16, 32, 64) if len(items) <= 1 << each]))
    indices = encoded.indices.fill_null(0).to_numpy().astype(f"<u{width // 8}")
    if leaf.type in STRINGS.values():
        offset_bits = next(bits for bits, each in STRINGS.items() if each == leaf.type)
        block = handmade.variable_block(_byte_values(items), offset_bits)
    else:
        numbers = _fixed_values(items)
        block = draw(st.sampled_from([handmade.flat, handmade.rle_block]))(numbers)
    scheme = draw(st.sampled_from(["", "lz4", "zstd"]))
    if scheme and block.encoding.WhichOneof("compression") != "rle":
        block = handmade.general(block, scheme)
    notes.append(f"dictionary of {len(items)} by {width}-bit indices")
    return (block, len(items)), indices


def _full_zip_page(draw: Any, array: pa.Array, notes: list[str]) -> Page | None:
    slots, layers, leaf = slots_of(array)
    arrays = _level_arrays(draw, slots, layers)
    if not visible(arrays).any():
        return None
    if pa.types.is_fixed_size_list(leaf.type):
        rows = []
        for vector in leaf.to_pylist():
            items = vector or [None] * 3
            validity = sum(1 << at for at, item in enumerate(items) if item is not None)
            data = np.array([item or 0.0 for item in items], "<f4").tobytes()
            rows.append(bytes([validity]) + data)
        lists = pb.FixedSizeList(items_per_value=3, values=handmade.flat_encoding(32), has_validity=True)
        notes.append("full-zip vectors")
        return handmade.full_zip(arrays, len(array), pb.CompressiveEncoding(fixed_size_list=lists), rows)
    if leaf.type not in STRINGS.values():
        values = _fixed_values(leaf)
        values = values.astype(np.uint8) if values.dtype == np.bool_ else values
        notes.append("full-zip flat")
        encoding = handmade.flat_encoding(values.dtype.itemsize * 8)
        return handmade.full_zip(arrays, len(array), encoding, [value.tobytes() for value in values])
    offset_bits = next(bits for bits, each in STRINGS.items() if each == leaf.type)
    encoding = handmade.variable_encoding(offset_bits)
    strings = _byte_values(leaf)
    kind = draw(st.sampled_from(["variable", "fsst", "zstd"]))
    if kind == "fsst":
        strings = [handmade.fsst_code(value) for value in strings]
        message = pb.Fsst(symbol_table=handmade.fsst_table(), values=encoding)
        encoding = pb.CompressiveEncoding(fsst=message)
    elif kind == "zstd":
        strings = [handmade.compress(value, "zstd") for value in strings]
        compression = pb.BufferCompression(scheme=pb.BufferCompression.ZSTD)
        encoding = pb.CompressiveEncoding(general=pb.General(compression=compression, values=encoding))
    notes.append(f"full-zip {kind}")
    return handmade.full_zip(arrays, len(array), encoding, strings, offset_bits)


@st.composite
def random_files(draw: st.DrawFn, most_pages: int = 3) -> RandomFile:
    """A file with one column of one to `most_pages` pages."""
    large = draw(st.booleans())
    leaf = draw(st.sampled_from([*INTEGERS.values(), *STRINGS.values(), pa.bool_(), pa.float32(), VECTOR]))
    arrow_type = leaf
    for wrapper in draw(st.lists(st.sampled_from(["list", "large_list", "struct"]), max_size=3)):
        wrap = {
            "list": pa.list_,
            "large_list": pa.large_list,
            "struct": lambda each: pa.struct([("a", each)]),
        }
        arrow_type = wrap[wrapper](arrow_type)
    notes = [str(arrow_type), "2.2" if large else "2.1"]
    pages = []
    arrays = []
    for _ in range(draw(st.integers(1, most_pages))):
        count = draw(st.one_of(st.integers(1, 30), st.integers(31, 1500)))
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        array = random_array(arrow_type, count, draw(st.sampled_from(MIXES)), rng)
        if leaf in INTEGERS.values() and arrow_type == leaf and draw(st.booleans()):
            small = pa.array((np.arange(count) // 7 % 5).astype(leaf.to_pandas_dtype()))
            array = pa.Array.from_buffers(leaf, count, [array.buffers()[0], small.buffers()[1]])
        make = draw(st.sampled_from(["mini-block", "full-zip"]))
        notes.append(f"page of {count} rows")
        page = (
            _mini_block_page(draw, array, large, notes)
            if make == "mini-block"
            else _full_zip_page(draw, array, notes)
        )
        if page is not None:
            pages.append(page)
            arrays.append(array)
    merged = pa.concat_arrays(arrays) if arrays else pa.array([], arrow_type)
    table = one_column(merged)
    data = handmade.make_file(table.schema, [pages], len(merged), (2, 2) if large else (2, 1))
    return RandomFile(data, table, tuple(notes))
