"""Byte-stream split: all first bytes, then all second bytes, and so on (format 2.1).

It saves nothing by itself, but improves compression if bytes at the same position are similar.
"""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.v2_1 import flat
from lance_engine.encodings.v2_1.candidate import Candidate, Encoded, stored
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.values import FixedValues, byte_entropy
from lance_engine.format.pb import encodings21_pb2 as pb

_BITS = (32, 64)
_MOST_ENTROPY = 4.0
_VALUE_NS = 3.0


def describe(bits: int) -> pb.CompressiveEncoding:
    """The bytes of values of `bits` each, grouped by position."""
    return pb.CompressiveEncoding(byte_stream_split=pb.ByteStreamSplit(values=flat.describe(bits)))


def estimate(context: PageContext, values: FixedValues) -> Candidate | None:
    if values.bits not in _BITS or not context.schemes(values.nbytes) or not _is_wanted(context, values):
        return None
    split: Encoded = (kernels.ByteStreamSplitValues(*values.place), describe(values.bits))
    asked = context.settings.byte_split == "on"
    return stored(split, values.nbytes, _VALUE_NS, around=lambda: split, alone=False, asked=asked)


def _is_wanted(context: PageContext, values: FixedValues) -> bool:
    wish = context.settings.byte_split
    if wish != "auto":
        return wish == "on"
    if context.settings.general:
        return byte_entropy(values) < _MOST_ENTROPY
    return context.profile.byte_streams
