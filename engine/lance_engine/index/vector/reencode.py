"""Continues from a stored segment: restores its encoder, and reads its encoded rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_engine.format.pb import index_pb2
from lance_engine.index.vector.codec import U8Array, U64Array, lists_in, numbers_in
from lance_engine.index.vector.encoder import Coder, Encoder, ProductCoder, ScalarCoder
from lance_engine.index.vector.flat import FlatCodec
from lance_engine.index.vector.options import KINDS, VectorOptions
from lance_engine.index.vector.pq import ProductCodec
from lance_engine.index.vector.segment import VectorSegment
from lance_engine.index.vector.sq import ScalarCodec


def encoder_of(segment: VectorSegment, details: bytes, value_type: pa.DataType) -> Encoder | None:
    """The encoder for rows as a segment stores them; None if its kind is not written.

    `value_type` is the type of the column, which centroids have and codes do not.
    """
    if segment.kind not in KINDS:
        return None
    codec = segment.codec
    neighbours, candidates = _graph_options(details)
    options = VectorOptions(
        kind=segment.kind,
        metric=segment.metric,
        value_type=codec.item if isinstance(codec, FlatCodec) else value_type,
        dim=segment.dim,
        partitions=len(segment.centroids),
        parts=codec.parts if isinstance(codec, ProductCodec) else 0,
        bits=codec.bits if isinstance(codec, ProductCodec) else 0,
        rounds=50,
        sample_rate=256,
        trainer="own",
        neighbours=neighbours,
        candidates=candidates,
    )
    if isinstance(codec, FlatCodec):
        return Encoder(options, segment.centroids, Coder(options))
    if isinstance(codec, ScalarCodec):
        return Encoder(options, segment.centroids, ScalarCoder(options, codec.low, codec.high))
    if isinstance(codec, ProductCodec):
        shape = (codec.parts, 1 << codec.bits, segment.dim // codec.parts)
        return Encoder(options, segment.centroids, ProductCoder(options, codec.codebook.reshape(shape)))
    return None


def same_codes(segment: VectorSegment, encoder: Encoder) -> bool:
    """Whether a segment has the partitions and codes of an encoder."""
    other = encoder_of(segment, b"", encoder.options.value_type)
    if other is None or segment.metric is not encoder.options.metric:
        return False
    return (
        other.options.coding == encoder.options.coding
        and np.array_equal(other.centroids, encoder.centroids)
        and other.coder.entries() == encoder.coder.entries()
        and other.coder.column_type == encoder.coder.column_type
    )


def stored_rows(segment: VectorSegment) -> Iterator[tuple[U64Array, U8Array]]:
    """The ids and codes of each partition with rows."""
    codec = segment.codec
    for number, length in enumerate(segment.lengths):
        if not length:
            continue
        batch = segment.rows(number)
        ids = numbers_in(batch.column(0), pa.uint64())
        column = batch.column(1)
        codes = lists_in(column, column.type.value_type, column.type.list_size)
        if isinstance(codec, ProductCodec) and codec.transposed:
            yield ids, np.ascontiguousarray(codes.reshape(-1, len(ids)).T)
        else:
            yield ids, codes.reshape(len(ids), -1)


def _graph_options(details: bytes) -> tuple[int, int]:
    """The neighbours and candidates with which a graph was built, or the defaults."""
    try:
        hnsw = index_pb2.VectorIndexDetails.FromString(details).hnsw
    except DecodeError:
        return 20, 150
    neighbours = hnsw.max_connections if 4 <= hnsw.max_connections <= 1024 else 20
    return neighbours, max(neighbours, hnsw.construction_ef if hnsw.construction_ef < 1 << 16 else 150, 1)
