"""The encodings of fixed-width values in chunks: plain, packed, runs, byte streams, compressed or not."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.write.candidate import Candidate, Encoded, cheapest, compressed, stored
from lance_engine.write.page_context import PageContext
from lance_engine.write.values import INTEGER_BITS, FixedValues, byte_entropy

_SPLIT_BITS = (32, 64)
_SPLIT_ENTROPY = 4.0
_PACKED_NS, _RUN_NS, _SPLIT_NS = 0.4, 1.0, 3.0


def best_encoding(context: PageContext, values: FixedValues) -> Candidate:
    """The cheapest encoding without a dictionary."""
    arguments = (values.buffer, values.bits, values.offset, values.count)
    settings, size = context.settings, (values.count * values.bits + 7) // 8
    plain: Encoded = (kernels.FlatValues(*arguments), v2_1.flat(values.bits))
    candidates = [stored(plain, size, 0.0)]
    if settings.compression == "none":
        return candidates[0]
    # What general compression may be put around, beside plain values.
    wrappable: list[tuple[Encoded, Candidate]] = []
    if values.bits in INTEGER_BITS:
        packed_size, run_size = kernels.integer_statistics(*arguments)
        if packed_size < size:
            packed = (kernels.BitpackedValues(*arguments), v2_1.inline_bitpacking(values.bits))
            candidates.append(stored(packed, packed_size, _PACKED_NS))
        runs = run_size // (values.bits // 8 + 1)
        if run_size < size and runs < settings.run_threshold * values.count:
            coded = (kernels.RunLengthValues(*arguments), v2_1.run_length(values.bits))
            candidates.append(stored(coded, run_size, _RUN_NS))
            wrappable.append((coded, candidates[-1]))
    schemes = context.schemes(size)
    if not schemes:
        return cheapest(candidates, [], context.profile)
    chunk_bytes = context.profile.chunk_bytes + 1 if context.wide_chunks else context.profile.chunk_bytes
    wide: Encoded = (kernels.FlatValues(*arguments, chunk_bytes), plain[1])
    wrappable.append((wide, candidates[0]))
    if values.bits in _SPLIT_BITS and _split_wanted(context, values):
        split = (kernels.ByteStreamSplitValues(*arguments), v2_1.byte_stream_split(values.bits))
        wrappable.append((split, stored(split, size, _SPLIT_NS)))
        if settings.byte_split == "on":
            wrappable = wrappable[-1:]
    wrapped = [
        compressed(*encoded, scheme, settings.level, inner)
        for encoded, inner in wrappable
        for scheme in schemes
    ]
    if settings.general:
        # Asked for: decoding time does not count.
        return min(candidates + wrapped, key=lambda candidate: candidate.size)
    return cheapest(candidates, wrapped, context.profile)


def _split_wanted(context: PageContext, values: FixedValues) -> bool:
    """Whether to try byte streams, which prepare compression where the bytes of a position look alike."""
    wanted = context.settings.byte_split
    if wanted != "auto":
        return wanted == "on"
    if context.settings.general:
        return byte_entropy(values) < _SPLIT_ENTROPY
    return context.profile.byte_streams
