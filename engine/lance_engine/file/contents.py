"""The bytes of one data file: mapped where it is local, fetched range by range where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, LanceError, Placed, StorageError
from lance_engine.io.coalesce import coalesce
from lance_engine.metrics import count_read

if TYPE_CHECKING:
    from lance_engine.io.store import Store

# The end of a remote file is read in one request of this size: most files' footer and column metadata fit.
TAIL_SIZE = 64 << 10


class FileContents:
    """A data file, opened.

    Local files are mapped into memory. Of others, only the byte ranges asked for are fetched: the metadata of
    columns once, when they are first used, and the data of a batch with each batch.
    """

    def __init__(self, store: Store, path: str, *, size: int | None = None) -> None:
        """Open `path`; `size` in bytes saves a request where the caller knows it."""
        self.path = path
        self._store = store
        self._segments: kernels.SegmentSource | None = None
        with self.placed():
            local = store.local_path(path)
            self.source: kernels.Source
            if local is not None:
                self.source = _mapped(store, path, local)
            else:
                known = store.size(path) if size is None else size
                self.source = self._segments = kernels.SegmentSource(known)
            actual = self.source.size
            if size is not None and size != actual:
                raise CorruptFileError(
                    f"The file has {actual} bytes, the manifest says {size}",
                    remedy="Restore the file from a copy, or go back to a version that does not use it",
                )
            self.size = actual

    @property
    def is_local(self) -> bool:
        """Whether the file is mapped, so that nothing needs to be fetched."""
        return self._segments is None

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file; fetched and kept where the file is not local."""
        if self._segments is not None and not self._segments.holds(offset, length):
            self._fetch(self._segments, [(offset, length)])
        elif self._segments is None:
            count_read(0, length)
        return self.source.read(offset, length)

    def read_tail(self, local_length: int) -> bytes:
        """The end of the file: `local_length` bytes, and what follows from there at no cost where remote."""
        length = min(self.size, local_length if self._segments is None else TAIL_SIZE)
        return self.read(self.size - length, length)

    def overlay(
        self, leaves: Sequence[kernels.LeafColumn], ranges: Sequence[tuple[int, int]]
    ) -> tuple[kernels.Source, kernels.Source]:
        """Fetch what decoding `ranges` of rows of `leaves` needs.

        Gives the source of the file and the one to read in its place. Bytes whose place only the data can
        tell are not among them: a decoder that misses them says so.
        """
        if self._segments is None:
            return self.source, self.source
        bounds = [(leaf, begin, end) for leaf in leaves for begin, end in ranges]
        self._fetch(self._segments, [span for leaf, *rows in bounds for span in leaf.metadata_ranges(*rows)])
        batch = kernels.SegmentSource(self._segments)
        self._fetch(batch, [span for leaf, *rows in bounds for span in leaf.data_ranges(*rows)])
        return self._segments, batch

    def fetch(self, target: kernels.Source, offset: int, length: int) -> None:
        """Fetch a range that a decoder missed into the source made by `overlay`."""
        if isinstance(target, kernels.SegmentSource):
            self._fetch(target, [(offset, length)])

    def fetch_lasting(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch ranges of a remote file for as long as it is open."""
        if self._segments is not None:
            self._fetch(self._segments, ranges)

    def _fetch(self, target: kernels.SegmentSource, ranges: Sequence[tuple[int, int]]) -> None:
        missing = coalesce(span for span in ranges if not target.holds(*span))
        if not missing:
            return
        count_read(len(missing), sum(length for _, length in missing))
        for (offset, _), data in zip(missing, self._store.read_ranges(self.path, missing), strict=True):
            target.add(offset, data)

    def placed(self, **place: object) -> Placed:
        """A block that turns errors of the kernels into ours and adds where they happened."""
        return Placed(self._place_error, **place)

    def _place_error(self, error: BaseException, **place: object) -> LanceError | None:
        if isinstance(error, FileNotFoundError):
            return CorruptFileError(
                "A data file of the dataset is missing",
                path=self.path,
                remedy="Restore the file from a copy, or go back to a version that does not use it",
            ).at(**place)
        if isinstance(error, LanceError):
            return error.at(path=self.path, **place)
        if isinstance(error, kernels.CorruptDataError):
            what, column, page = error.args
            return CorruptFileError(what, path=self.path).at(column=column, page=page).at(**place)
        return None


def _mapped(store: Store, path: str, local: str) -> kernels.MappedSource:
    try:
        return kernels.MappedSource.open(local)
    except RuntimeError as error:
        store.size(path)  # says so in its own words where the file is missing, or is none
        raise StorageError(str(error)) from error
