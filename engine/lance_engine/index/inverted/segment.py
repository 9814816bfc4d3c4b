"""One open segment of an inverted index: its partitions, and posting lists read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from pyroaring import BitMap

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.fetch import each_ahead
from lance_engine.index.cache import VECTORS
from lance_engine.index.files import SegmentFiles, index_errors
from lance_engine.index.inverted.layout import (
    DELETED,
    METADATA_FILE,
    OLD_LISTS_FILE,
    OLD_TOKENS_FILE,
    Layout,
    file_name,
)
from lance_engine.index.inverted.partition import TextPartition

Made = TypeVar("Made")

# Since this version, list items may be separate documents.
_LIST_ITEMS: Final = 3


class TextSegment:
    """An open segment. UnsupportedFeatureError if its kind or layout is not supported.

    Of a segment by pylance up to 0.27, only the tokenization is read, and it covers nothing.
    """

    kind: Final = "Inverted"

    def __init__(self, files: SegmentFiles) -> None:
        self._files, self._is_local = files, files.is_local
        self.deleted_fragments = BitMap()
        self.is_outdated = not files.exists(METADATA_FILE) and files.exists(OLD_TOKENS_FILE)
        if self.is_outdated:
            with index_errors(files.segment.name):
                tokens, lists = files.open(OLD_TOKENS_FILE), files.open(OLD_LISTS_FILE)
                with_position = "_position" in lists.schema.names
                self.layout = Layout.parse_old(tokens.schema.metadata, with_position=with_position)
            self.deleted_fragments = BitMap(files.segment.fragment_ids or ())
            return
        metadata = files.open(METADATA_FILE)
        with index_errors(files.segment.name):
            self.layout = Layout.parse(metadata.schema.metadata)
            if files.segment.index_version >= _LIST_ITEMS and self.partitions:
                documents = files.open(file_name(self.partitions[0], "docs"))
                if any(name.startswith("_doc_index") for name in documents.schema.names):
                    raise UnsupportedFeatureError("The index has a document for each item of a list")
            if DELETED in metadata.schema.names:
                for value in metadata.read([DELETED]).column(0).to_pylist():
                    self.deleted_fragments |= _bitmap(value)

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without partitions."""
        return 1 << 12

    @property
    def partitions(self) -> Sequence[int]:
        """The numbers of the partitions."""
        return self.layout.partitions

    @property
    def has_positions(self) -> bool:
        """Whether word positions are known, which phrase searches need."""
        return all(self.partition(number).has_positions for number in self.partitions)

    def partition(self, number: int) -> TextPartition:
        """A partition, from the cache if possible."""

        def make() -> TextPartition:
            with index_errors(self._files.segment.name):
                return TextPartition(self._files, number, self.layout)

        return VECTORS.get((self._files.key, "texts", number), make, lambda made: made.nbytes)

    def postings(self, number: int, token: int, *, positions: bool) -> kernels.Postings:
        """The documents of a token in a partition, from the cache if possible."""

        def make() -> kernels.Postings:
            partition = self.partition(number)
            with index_errors(self._files.segment.name):
                return partition.postings(token, positions=positions)

        key = (self._files.key, "postings", number, token, positions)
        return VECTORS.get(key, make, lambda made: made.nbytes + 256)

    def counts(self, number: int, tokens: Sequence[int]) -> list[int]:
        """How many documents of a partition contain each of some tokens."""
        partition = self.partition(number)
        key = (self._files.key, "counts", number, tuple(tokens))
        with index_errors(self._files.segment.name):
            return VECTORS.get(key, partial(partition.counts, tokens), lambda made: 64 * (1 + len(made)))

    def ahead(self, work: Callable[[int], Made], numbers: Sequence[int]) -> Iterator[Made]:
        """The results of `work` for partitions or tokens; in parallel for remote files."""
        return map(work, numbers) if self._is_local else each_ahead(work, numbers)

    @property
    def statistics(self) -> Mapping[str, int]:
        """Statistics for people."""
        parts = [self.partition(number) for number in self.partitions]
        return {
            "partitions": len(parts),
            "documents": sum(part.part.documents for part in parts),
            "tokens": sum(part.part.tokens for part in parts),
            "distinct_tokens": sum(len(part.tokens) for part in parts),
        }


def _bitmap(value: Any) -> BitMap:
    try:
        return BitMap.deserialize(value)
    except (TypeError, ValueError, IndexError) as error:
        raise CorruptFileError("The deleted fragments of the index are not a Roaring bitmap") from error
