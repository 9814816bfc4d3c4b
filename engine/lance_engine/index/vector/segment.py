"""One segment of a vector index, opened: its centroids in memory, partitions as they are searched.

``index.idx`` has the centroids, and the graphs of HNSW kinds; ``auxiliary.idx`` the vectors or their codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.fetch import each_ahead
from lance_engine.file.table import FileTable
from lance_engine.index.cache import VECTORS
from lance_engine.index.files import SegmentFiles, index_errors, whole_numbers
from lance_engine.index.vector import graph
from lance_engine.index.vector.codec import ROW_ID, Codec, F32Array
from lance_engine.index.vector.flat import FlatCodec
from lance_engine.index.vector.ivf import Ivf, parse_ivf
from lance_engine.index.vector.metadata import embedded, json_of, metric_in, object_in
from lance_engine.index.vector.pq import ProductCodec
from lance_engine.index.vector.rq import RotatedCodec
from lance_engine.index.vector.sq import ScalarCodec

INDEX_FILE: Final = "index.idx"
VECTORS_FILE: Final = "auxiliary.idx"

_CODECS: Final = ("FLAT", "PQ", "SQ", "RQ")
_GRAPHS: Final = ("FLAT", "PQ", "SQ")


def is_untrained(files: SegmentFiles) -> bool:
    """Whether an index was described only: pylance writes no files without a vector to train on."""
    return not files.segment.fragment_ids and not files.exists(INDEX_FILE)


class VectorSegment:
    """An opened segment. UnsupportedFeatureError for unknown kinds and layouts."""

    is_outdated: Final = False

    def __init__(self, files: SegmentFiles) -> None:
        self._files, self._is_local = files, files.is_local
        with index_errors(files.segment.name), _unread_kinds(files.segment.name):
            if is_untrained(files):
                raise UnsupportedFeatureError("The index has no files: no row was indexed yet")
            self._index = files.open(INDEX_FILE)
            metadata = _metadata(self._index)
            entries = object_in(json_of(metadata, "lance:index"), "lance:index")
            self.kind = str(entries.get("type"))
            self.metric = metric_in(entries.get("distance_type"))
            family, _, self.coding = self.kind.rpartition("_")
            self.has_graph = family == "IVF_HNSW"
            if self.coding not in (_GRAPHS if self.has_graph else _CODECS) or family not in (
                "IVF",
                "IVF_HNSW",
            ):
                raise UnsupportedFeatureError(f"Unsupported kind of vector index: {self.kind[:40]}")
            self._vectors = files.open(VECTORS_FILE)
            graphs = _ivf(self._index, metadata)
            stored = _ivf(self._vectors, _metadata(self._vectors))
            if graphs.centroids is None or graphs.partitions != stored.partitions:
                raise CorruptFileError(
                    "The files of the index have different partitions", path=self._index.path
                )
            self.centroids: F32Array = graphs.centroids
            self._graph_rows, self._rows = graphs, stored
            self._graphs = self._graph_entries(metadata)
            self._codec = self._open_codec(self.coding)

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return int(self.centroids.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without partitions."""
        return self.centroids.nbytes + (1 << 12)

    @property
    def lengths(self) -> list[int]:
        """The number of rows of each partition."""
        return [int(length) for length in self._rows.lengths]

    @property
    def codec(self) -> Codec:
        """How vectors are stored."""
        return self._codec

    @property
    def statistics(self) -> Mapping[str, int]:
        """Statistics for display."""
        lengths = self._rows.lengths
        return {
            "partitions": self._rows.partitions,
            "indexed_rows": int(lengths.sum()),
            "largest_partition": int(lengths.max(initial=0)),
        }

    def partition(self, number: int) -> kernels.Partition:
        """The rows of a partition, ready to be searched; kept in the cache."""

        def make() -> tuple[kernels.Partition, int]:
            with index_errors(self._files.segment.name):
                return self._read(number)

        key = (self._files.key, "partition", number)
        return VECTORS.get(key, make, lambda made: made[1])[0]

    def nearby(self, numbers: Sequence[int]) -> list[kernels.Partition]:
        """Several partitions; if the files are remote, they are read together."""
        if self._is_local:
            return [self.partition(number) for number in numbers]
        return list(each_ahead(self.partition, numbers))

    def rows(self, number: int) -> pa.RecordBatch:
        """The row ids of a partition, and their stored vectors or codes, in the order of the file."""
        begin = int(self._rows.offsets[number])
        end = begin + int(self._rows.lengths[number])
        return self._vectors.read([ROW_ID, *self._codec.columns], begin, end)

    def _read(self, number: int) -> tuple[kernels.Partition, int]:
        batch = self.rows(number)
        ids = whole_numbers(batch.column(0)).astype(np.uint64, copy=False)
        try:
            partition = self._codec.partition(
                np.ascontiguousarray(ids), batch.columns[1:], self.centroids[number], self.has_graph
            )
        except LanceError:
            raise
        except ValueError as error:
            raise CorruptFileError(
                "A partition of the index is inconsistent", path=self._vectors.path
            ) from error
        size = int(batch.get_total_buffer_size())
        if self.has_graph and len(ids):
            begin = int(self._graph_rows.offsets[number])
            end = begin + int(self._graph_rows.lengths[number])
            nodes = self._index.read([graph.NODE, graph.NEIGHBOURS], begin, end)
            graph.attach(partition, embedded(self._graphs[number], "lance:hnsw"), nodes)
            size += int(nodes.get_total_buffer_size())
        return partition, size

    def _graph_entries(self, metadata: Mapping[str, str]) -> list[object]:
        if not self.has_graph:
            return []
        entries = json_of(metadata, "lance:hnsw")
        if not isinstance(entries, list) or len(entries) != self._rows.partitions:
            raise CorruptFileError("The index does not describe a graph for each of its partitions")
        return entries

    def _open_codec(self, coding: str) -> Codec:
        metadata = _metadata(self._vectors)
        texts = json_of(metadata, "storage_metadata")
        if not isinstance(texts, list) or len(texts) != 1:
            raise CorruptFileError("The index does not describe how vectors are stored")
        entries = embedded(texts[0], "storage_metadata")
        stored = self._vectors.schema.to_arrow()
        try:
            match coding:
                case "FLAT":
                    return FlatCodec(entries, self.metric, self.dim, stored)
                case "SQ":
                    return ScalarCodec(entries, self.metric, self.dim)
                case "PQ":
                    return ProductCodec(entries, self.metric, self.dim, self._vectors.buffer)
                case _:
                    return RotatedCodec(entries, self.metric, self.dim, stored, self._vectors.buffer)
        except LanceError as error:
            raise error.at(path=self._vectors.path) from error.__cause__


@contextmanager
def _unread_kinds(name: str) -> Iterator[None]:
    """Keep `index_errors` from reporting a file of an unknown kind as damaged."""
    try:
        yield
    except UnsupportedFeatureError as error:
        raise error.at(index=name) from None


def _metadata(file: FileTable) -> Mapping[str, str]:
    return file.schema.metadata


def _ivf(file: FileTable, metadata: Mapping[str, str]) -> Ivf:
    position = metadata.get("lance:ivf", "")
    if not (position.isascii() and position.isdigit() and len(position) < 10):
        raise UnsupportedFeatureError("The partitions of the index are not in a buffer of its file")
    try:
        return parse_ivf(file.buffer(int(position)), file.rows)
    except LanceError as error:
        raise error.at(path=file.path) from error.__cause__
