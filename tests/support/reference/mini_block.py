"""Mini-block pages: chunks of a few KiB, each with its levels and value buffers.

Page buffers: 0 one word per chunk, 1 the chunks, [2 the dictionary], [last: the repetition index].

Chunk word (u16, or u32 if `has_large_chunk`): ``(chunk bytes / 8 - 1) << 4 | log2(values)``; the last chunk
holds whatever is left of `num_items`.

Chunk: u16 number of levels, u16 size of the repetition buffer and of the definition buffer (each only if the
page has it), the size of every value buffer (u16 or u32), then those buffers; each part is padded to 8 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from lance_engine.errors import CorruptFileError

from reference import compressive
from reference.levels import LevelArrays, Levels, max_visible, parse_layers
from reference.sections import pad, section, unsigned
from reference.values import Dictionary, Fixed, Values, concatenate

ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Chunk:
    """One decoded chunk."""

    repetition: Levels | None
    definition: Levels | None
    values: Values


def chunk_table(layout: Any, metadata: bytes) -> list[tuple[int, int]]:
    """The (bytes, values) of every chunk, from page buffer 0."""
    width = 4 if layout.has_large_chunk else 2
    if len(metadata) % width:
        raise CorruptFileError(f"{len(metadata)} bytes of chunk metadata are not {8 * width}-bit words")
    words = np.frombuffer(metadata, f"<u{width}").tolist()
    chunks = []
    remaining = int(layout.num_items)
    for index, word in enumerate(words):
        count = 1 << (word & 15)
        if index == len(words) - 1:
            if word & 15 and count != remaining:
                raise CorruptFileError(f"the last chunk declares {count} values, {remaining} are left")
            count = remaining
        elif count == 1 or count > remaining:
            raise CorruptFileError(f"chunk {index} cannot hold {count} of {remaining} values")
        remaining -= count
        chunks.append(((word // 16 + 1) * ALIGNMENT, count))
    if remaining:
        raise CorruptFileError(f"{remaining} values are in no chunk")
    return chunks


def decode_levels(encoding: Any, data: bytes, count: int) -> Levels:
    """One compressed level array."""
    values = compressive.decode_block(encoding, data, count)
    if not isinstance(values, Fixed) or values.bits != 16:
        raise CorruptFileError("levels are 16-bit integers")
    return values.integers().astype(np.uint16)


def decode_chunk(layout: Any, data: bytes, count: int) -> Chunk:
    """One chunk of `count` values."""
    position = 2
    level_count = unsigned(data, 0, 2, "number of levels")
    widths = [2] * (layout.HasField("rep_compression") + layout.HasField("def_compression"))
    widths += [4 if layout.has_large_chunk else 2] * layout.num_buffers
    sizes = []
    for width in widths:
        sizes.append(unsigned(data, position, width, "chunk header"))
        position += width
    buffers = []
    for size in sizes:
        position = pad(position, ALIGNMENT)
        buffers.append(section(data, position, size, "chunk buffer"))
        position += size
    repetition = definition = None
    if layout.HasField("rep_compression"):
        repetition = decode_levels(layout.rep_compression, buffers.pop(0), level_count)
    if layout.HasField("def_compression"):
        definition = decode_levels(layout.def_compression, buffers.pop(0), level_count)
    layers = parse_layers(layout.layers)
    slots = count if repetition is None and definition is None else level_count
    if definition is not None and any(layer.is_list for layer in layers):
        slots = int((definition <= max_visible(layers)).sum())
    if slots != count:
        raise CorruptFileError(f"a chunk of {count} values has levels for {slots}")
    return Chunk(repetition, definition, compressive.decode_chunk(layout.value_compression, buffers, count))


def decode(layout: Any, buffers: list[bytes]) -> tuple[LevelArrays, Values]:
    """A whole page: its levels and visible values."""
    expected = 2 + layout.HasField("dictionary") + (layout.repetition_index_depth > 0)
    if len(buffers) != expected:
        raise CorruptFileError(f"a mini-block page with {len(buffers)} buffers instead of {expected}")
    chunks = []
    position = 0
    for size, count in chunk_table(layout, buffers[0]):
        chunks.append(decode_chunk(layout, section(buffers[1], position, size, "chunk"), count))
        position += size
    if not chunks:
        raise CorruptFileError("a mini-block page without chunks")
    values = concatenate([chunk.values for chunk in chunks])
    if layout.HasField("dictionary"):
        items = compressive.decode_block(layout.dictionary, buffers[2], int(layout.num_dictionary_items))
        if not isinstance(values, Fixed):
            raise CorruptFileError("dictionary indices are not integers")
        if len(values) and int(values.integers().max()) >= len(items):
            raise CorruptFileError(f"dictionary index {values.integers().max()} of {len(items)}")
        values = Dictionary(values, items)
    repetition = _join([chunk.repetition for chunk in chunks])
    definition = _join([chunk.definition for chunk in chunks])
    levels = definition if repetition is None else repetition
    count = len(values) if levels is None else len(levels)
    return LevelArrays(parse_layers(layout.layers), repetition, definition, count), values


def _join(levels: list[Levels | None]) -> Levels | None:
    present = [each for each in levels if each is not None]
    return np.concatenate(present) if present else None


def repetition_index(arrays: LevelArrays, entries: list[int]) -> npt.NDArray[np.uint64]:
    """What the repetition index of a page must say: (rows ended, entries of an unfinished row) per chunk.

    `entries` is the number of entries in each chunk.
    """
    assert arrays.repetition is not None
    starts = arrays.repetition == sum(layer.is_list for layer in arrays.layers)
    words = []
    stop = 0
    for index, count in enumerate(entries):
        start, stop = stop, stop + count
        last = index == len(entries) - 1
        closed = last or bool(starts[stop])
        begins = np.flatnonzero(starts[start:stop])
        ended = int((begins > 0).sum()) + closed
        open_from = int(begins[-1]) if len(begins) else 0
        words.append((ended, 0 if closed else count - open_from))
    return np.array(words, np.uint64).reshape(-1, 2)
