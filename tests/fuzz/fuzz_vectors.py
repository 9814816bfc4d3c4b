"""Targets of the kernels of vector search: any bytes as vectors, codes, centroids and graphs."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from fuzz_loop import Target
from fuzz_mutation import mutate_bytes
from lance_engine import kernels
from lance_engine.errors import UnsupportedTypeError
from lance_engine.index.vector.encoder import train, usable
from lance_engine.index.vector.options import vector_options

NAN = float("nan")
DIMS = (1, 2, 7, 8, 15, 16, 17, 24, 32, 64, 65)
COUNTS = (1, 2, 5, 40, 200)
ELEMENTS = {"FLOAT16": "<f2", "FLOAT32": "<f4", "FLOAT64": "<f8", "INT8": "i1", "UINT8": "u1"}
KINDS = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ")
METRICS = ("l2", "cosine", "dot", "hamming")
_HEADER = struct.Struct("<8B")


@dataclass(frozen=True)
class Numbers:
    """Eight bytes that choose what is done, and the bytes of the vectors."""

    data: bytes

    def mutated(self, rng: random.Random, others: Sequence[Any]) -> Numbers:
        donor = rng.choice(others).data
        if rng.random() < 0.2:
            at = rng.randrange(_HEADER.size)
            return Numbers(self.data[:at] + rng.randbytes(1) + self.data[at + 1 :])
        return Numbers(self.data[: _HEADER.size] + mutate_bytes(rng, self.data[_HEADER.size :], donor))

    def stored(self) -> bytes:
        return self.data

    def choices(self) -> tuple[tuple[int, ...], bytes]:
        head = self.data[: _HEADER.size].ljust(_HEADER.size, b"\0")
        return _HEADER.unpack(head), self.data[_HEADER.size :]


class _Silent:
    """Progress that is ignored."""

    def begin(self, stage: str, total_rows: int | None = None, unit: str = "rows") -> None: ...
    def advance(self, rows: int) -> None: ...
    def end(self) -> None: ...


def _vectors(data: bytes, kind: str, dim: int) -> np.ndarray:
    """As many whole vectors as there are bytes for, not aligned in memory."""
    width = np.dtype(kind).itemsize * dim
    return np.frombuffer(data[: len(data) // width * width], dtype=kind).reshape(-1, dim)


def _ordered(nearest: kernels.Nearest, k: int, rows: int) -> str:
    """Whether a result has at most k rows, each once, nearest first."""
    numbers, ids, distances = nearest.result()
    for number in np.unique(numbers):
        chosen = numbers == number
        own, near = ids[chosen], distances[chosen]
        if len(own) > k or len(np.unique(own)) < len(own) or (len(own) and own.max() >= rows):
            return f"rows {own.tolist()} of {rows}, {k} asked for"
        if np.isnan(near).any() or (near[1:] < near[:-1]).any():
            return f"distances {near.tolist()}"
    return ""


def read_distances(input: Numbers) -> str:
    """The nearest rows are those with the least distances, whatever the bytes are."""
    (one, two, three, four, five, *_), data = input.choices()
    metric, element = METRICS[one % 4].upper(), [*ELEMENTS][two % len(ELEMENTS)]
    if metric == "HAMMING":
        element = ("INT8", "UINT8")[two % 2]
    dim, k = DIMS[three % len(DIMS)], COUNTS[four % len(COUNTS)]
    stored = _vectors(data, ELEMENTS[element], dim)
    if not len(stored):
        return ""
    precise = {"FLOAT64": np.float64}.get(element, np.float32)
    count = 1 + five % 5
    chosen = stored[np.arange(count) % len(stored)]
    with np.errstate(all="ignore"):
        queries = chosen.view(np.uint8) if metric == "HAMMING" else chosen.astype(precise)
    values = np.ascontiguousarray(queries).view(np.uint8).reshape(-1)
    query = kernels.VectorQuery(kernels.Metric[metric], kernels.Element[element], dim, values)
    flat = np.ascontiguousarray(stored).view(np.uint8).reshape(-1)
    distances = query.distances(flat)
    if metric == "HAMMING":
        bits = np.bitwise_count(chosen.view(np.uint8)[:, None] ^ stored.view(np.uint8)[None]).sum(axis=2)
        if not np.array_equal(bits, distances):
            return f"{distances.tolist()} are not {bits.tolist()}"
    valid = np.frombuffer(flat.tobytes()[: len(stored)].ljust(len(stored), b"\1"), np.uint8) & 1
    nearest = kernels.Nearest(count, k, NAN, NAN)
    nearest.scan(query, 0, flat, np.arange(len(stored), dtype=np.uint64), valid if five & 8 else None)
    return _ordered(nearest, k, len(stored))


def read_training(input: Numbers) -> str:
    """Centroids and codes of any vectors: of as many rows as there are, in partitions that there are."""
    (one, two, three, four, *_), data = input.choices()
    kind, metric = KINDS[one % len(KINDS)], METRICS[two % 3]
    value_type, name = ((pa.float16(), "<f2"), (pa.float32(), "<f4"), (pa.float64(), "<f8"))[three % 3]
    if one & 64:
        kind, metric, value_type, name = "IVF_FLAT", "hamming", pa.uint8(), "u1"
    dim = DIMS[four % len(DIMS)]
    stored = _vectors(data, name, dim)
    given: dict[str, Any] = {"num_partitions": 1 + four // 16, "max_iters": 3, "sample_rate": 8}
    if kind == "IVF_PQ":
        given |= {"num_sub_vectors": 1 if dim % 2 else 2, "num_bits": 8 if dim % 2 else 4}
    try:
        options = vector_options(kind, pa.list_(value_type, dim), 1 << 16, {"metric": metric, **given})
    except UnsupportedTypeError:
        return ""
    with np.errstate(all="ignore"):
        vectors, kept = usable(stored, None, options.metric)
        encoder = train(options, vectors, _Silent())
        labels, codes = encoder.encode(vectors)
    if encoder.centroids.shape != (options.partitions, dim):
        return f"{encoder.centroids.shape} centroids"
    if len(vectors) != kept.sum() or codes.shape != (len(vectors), encoder.coder.width):
        return f"{codes.shape} codes of {len(vectors)} vectors"
    if len(labels) != len(vectors) or (len(labels) and labels.max() >= options.partitions):
        return f"partitions {labels.tolist()}"
    if not len(vectors) or metric == "hamming":
        return ""
    floats = np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1)
    _, members, _ = kernels.Centroids(
        np.ascontiguousarray(encoder.centroids).reshape(-1), dim, metric == "dot"
    ).step(floats)
    return "" if members.sum() == len(vectors) else f"{members.tolist()} of {len(vectors)} vectors"


def read_graph(input: Numbers) -> str:
    """A graph of any vectors leads to every row, and is one that readers take."""
    (one, two, three, four, *_), data = input.choices()
    metric, dim = (kernels.Metric.L2, kernels.Metric.DOT)[one % 2], DIMS[two % len(DIMS)]
    vectors = _vectors(data, "<f4", dim)
    rows = len(vectors)
    neighbours = 2 + three % 12
    flat = np.ascontiguousarray(vectors).reshape(-1)
    entry, ends, ids, offsets, linked, distances = kernels.build_graph(
        metric, dim, flat, neighbours, neighbours + four % 30, 1 + four % 7, 1
    )
    if len(linked) != len(distances) or len(ids) + 1 != len(offsets) or (rows and entry >= rows):
        return f"{len(linked)} links, {len(distances)} distances, {len(ids)} nodes, {len(offsets)} offsets"
    if rows and np.diff(offsets[: rows + 1]).max() > 2 * neighbours:
        return "a node has too many links"
    numbers = np.arange(rows, dtype=np.uint64)
    partition = kernels.Partition.flat(metric, kernels.Element.FLOAT32, dim, numbers, flat.view(np.uint8))
    partition.set_graph(entry, ends, ids, offsets, linked)
    if not rows:
        return ""
    seen, left = {entry}, [entry]
    while left:
        row = left.pop()
        fresh = set(linked[offsets[row] : offsets[row + 1]].tolist()) - seen
        seen |= fresh
        left += fresh
    if len(seen) != rows:
        return f"{len(seen)} of {rows} rows are reached"
    nearest = kernels.Nearest(1, 10, NAN, NAN)
    everything = kernels.RowSet(np.zeros(1, np.uint64), np.full(1, rows, np.uint64))
    nearest.search(0, [partition], np.nan_to_num(vectors[0]), everything, False, 1 + three)
    return _ordered(nearest, 10, rows)


def read_codes(input: Numbers) -> str:
    """Codes and graphs of any numbers: refused, or searched within their bounds."""
    (one, two, three, four, five, six, *_), data = input.choices()
    metric, dim, rows = kernels.Metric[METRICS[one % 3].upper()], DIMS[two % len(DIMS)], three % 90
    raw = np.frombuffer(data, np.uint8)
    floats = _vectors(data, "<f4", 1).reshape(-1)
    bits = 1 + five % 8
    ids = np.arange(rows, dtype=np.uint64)
    centroid = np.resize(floats, dim) if len(floats) else np.zeros(dim, np.float32)

    def bytes_of(count: int) -> np.ndarray:
        return np.resize(raw, count) if len(raw) else np.zeros(count, np.uint8)

    def floats_of(count: int) -> np.ndarray:
        return np.resize(floats, count) if len(floats) else np.zeros(count, np.float32)

    slack = (0, 0, 0, 0, 1, -1)[six % 6]
    try:
        if four % 3 == 0:
            partition = kernels.Partition.scalar(
                metric,
                dim,
                float(centroid[0]),
                float(centroid[-1]),
                ids,
                bytes_of(max(0, rows * dim + slack)),
            )
        elif four % 3 == 1:
            parts = 1 if dim % 2 else 2
            width = 8 if dim % 2 or four & 8 else 4
            book = kernels.Codebook(metric, dim, parts, width, floats_of(max(0, (dim << width) + slack)))
            codes = bytes_of(max(0, rows * (parts * width // 8) + slack))
            partition = kernels.Partition.product(
                book, centroid, ids, codes, bool(four & 16), bool(four & 32)
            )
        else:
            signs, matrix = bytes_of(4 * -(-dim // 8)), np.zeros(0, np.float32)
            if four & 8:
                signs, matrix = np.zeros(0, np.uint8), floats_of(dim * dim)
            others = bytes_of(rows * -(-dim // 64) * 8 * (bits - 1))
            partition = kernels.Partition.rotated(
                metric, kernels.Rotation(dim, signs, matrix), centroid, ids, bits,
                bytes_of(max(0, rows * -(-dim // 8) + slack)), bool(four & 16), others,
                floats_of(rows), floats_of(rows),
            )  # fmt: skip
        if six & 64 and rows:
            links = raw[: 4 * (len(raw) // 4)].view("<u4") % np.uint32(rows + bool(six & 128))
            cuts = np.sort(np.resize(raw.astype(np.int64), rows - 1) % (len(links) + 1)) if rows > 1 else []
            offsets = np.concatenate([[0], cuts, [len(links)]]).astype(np.int32)
            nodes = np.arange(rows, dtype=np.uint32)
            partition.set_graph(
                five % (rows + 1), np.full(1, rows, np.uint64), nodes, offsets, links.astype(np.uint32)
            )
    except ValueError:
        return ""
    nearest = kernels.Nearest(1, 1 + two, NAN, NAN)
    allowed = kernels.RowSet(np.array([0, 40], np.uint64), np.array([30, 100], np.uint64))
    nearest.search(0, [partition], np.nan_to_num(centroid), allowed, bool(six & 32), 1 + five)
    return _ordered(nearest, 1 + two, rows)


def _seeds() -> list[Numbers]:
    random = np.random.default_rng(0)
    found = []
    for number in range(12):
        head = bytes(random.integers(0, 256, _HEADER.size, dtype=np.uint8))
        values = (random.normal(size=600) * 10.0 ** (number % 4)).astype("<f4")
        values[:: 50 + number] = (0, -0.0, 1e30, -3e38)[number % 4]
        found.append(Numbers(head + values.tobytes()))
    found.append(Numbers(bytes(_HEADER.size) + bytes(2000)))  # vectors that are equal
    found.append(Numbers(bytes(range(8)) + bytes(range(256)) * 6))
    return found


TARGETS = [
    Target("vectors: distances", _seeds, read_distances),
    Target("vectors: training", _seeds, read_training, load=Numbers),
    Target("vectors: graphs", _seeds, read_graph),
    Target("vectors: codes", _seeds, read_codes),
]
