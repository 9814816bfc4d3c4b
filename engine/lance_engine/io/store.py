"""The storage interface: one dataset root, flat relative paths, whole bytes in and ranges out."""

from __future__ import annotations

import datetime
import os
import re
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Protocol, Self

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

#: What to do about requests beyond the end of a file.
OUTSIDE_REMEDY: Final = (
    "The file is truncated, or the metadata that refers to it is damaged: restore it from a backup, or "
    "use a version that does not need it"
)


class Sink(ABC):
    """A file being written. It appears under its path on `close`, complete or not at all.

    As a context manager it is closed on success and discarded when the block fails.
    """

    @abstractmethod
    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        """Append `data`; returns its length in bytes."""

    @abstractmethod
    def tell(self) -> int:
        """Bytes written so far."""

    @abstractmethod
    def close(self) -> None:
        """Make the file visible. Does nothing on a closed or discarded sink."""

    @abstractmethod
    def discard(self) -> None:
        """Discard the file. Does nothing on a closed sink."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class Store(Protocol):
    """The files of one dataset.

    Paths are relative to the root, use ``/`` and stay below the root: anything else is a CorruptFileError,
    since paths come out of manifests. Reading a path that does not exist raises FileNotFoundError; reading
    past the end of a file raises CorruptFileError.
    """

    @property
    def uri(self) -> str:
        """Where the dataset is, in a form that `open_store` understands."""
        ...

    def size(self, path: str) -> int:
        """Length of a file in bytes."""
        ...

    def modified(self, path: str) -> datetime.datetime | None:
        """When a file was written, with a time zone; None if unknown."""
        ...

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """`length` bytes from `offset`, or everything from `offset` on."""
        ...

    def expect_size(self, path: str, size: int) -> None:
        """Announce the size of a file before parts of it are read: caches identify files by name and size."""
        ...

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        """The last `length` bytes, all of a shorter file, and its size; one request if possible."""
        ...

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Buffer]:
        """Several (offset, length) ranges of one file, in the requested order."""
        ...

    def list(self, prefix: str) -> list[str]:
        """The sorted paths of all files below the folder `prefix`, at any depth; none if it is missing."""
        ...

    def names(self, folder: str) -> Sequence[str]:
        """The names of the files in a folder, in no order; names of folders may be among them."""
        ...

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        """The first names in sort order, as many as one request returns, and whether these are all names."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file with this path exists."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write or replace a whole file; readers see the old or the new content, never a part."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write a whole file atomically; FileExistsError, and nothing changes, when the path is taken."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; one that does not exist is not an error."""
        ...

    def create(self, path: str) -> Sink:
        """Open a file for streaming; see `Sink`."""
        ...

    def local_path(self, path: str) -> str | None:
        """The path of a local file for memory mapping, or None."""
        ...


def max_in_flight_of(store: Store) -> int | None:
    """The number of concurrent requests for data that its options allow, None if they do not set it."""
    most: int | None = getattr(store, "max_in_flight", None)
    return most


def ranges_at_once(store: Store) -> int:
    """How many ranges `read_ranges` fetches in parallel, which costs less than threads."""
    ranges: int = getattr(store, "ranges_at_once", 1)
    return ranges


#: What arrived of a range: bytes, or memory that only views of it keep.
Buffer = bytes | memoryview


def read_buffer(store: Store, path: str, offset: int, length: int, *, reused: bool = True) -> Buffer:
    """A range of a file, which a store may have put into memory that is used again later, if `reused`.

    Many requests one after the other would scatter the memory of the process otherwise, which then keeps much
    more than it needs; a few are made sooner without that copy.
    """
    read: Callable[[str, int, int], Buffer] | None = getattr(store, "read_buffer", None)
    if read is None:
        return store.read(path, offset, length)
    return read(path, offset, length) if reused else store.read_ranges(path, [(offset, length)])[0]


def identity_of(store: Store) -> Hashable:
    """Equal for stores that reach the same files with the same rights, as far as they can tell."""
    identity: Hashable | None = getattr(store, "identity", None)
    return weakref.ref(store) if identity is None else identity


def delete_quietly(store: Store, paths: Iterable[str]) -> None:
    """Remove files that nothing refers to, as far as possible: used while another error is being raised."""
    for path in paths:
        with suppress(Exception):
            store.delete(path)


def not_atomic(uri: str) -> UnsupportedFeatureError:
    """The error for storage that cannot create a file only if it is absent."""
    return UnsupportedFeatureError(
        "Commits are not safe on this storage: it cannot atomically create a file that must not exist yet",
        path=uri,
        remedy="Use a manifest store that all writers can access: "
        "storage_options={'manifest_store': 'sqlite:///mnt/share/manifests.db'}; or write to a local "
        "folder, S3, Google Cloud Storage or Azure Blob Storage",
    )


# Usual paths of datasets, which need no further checks.
_PLAIN_PATH: Final = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*\Z", re.ASCII)


def checked_path(path: str) -> str:
    """`path` itself if it is relative and stays below the root, else CorruptFileError."""
    if _PLAIN_PATH.match(path):
        return path
    parts = path.split("/")
    if (
        any(part in ("", ".", "..") for part in parts)
        or "\\" in path
        or "\0" in path
        or len(path) > _LONGEST_PATH
        or any(len(part) > _LONGEST_NAME for part in parts)
        or not is_encodable(path)
        or parts[0].endswith(":")
    ):
        raise CorruptFileError("A file path must be relative and inside the dataset", path=repr(path))
    return path


# The limit of file systems and object stores, in bytes.
_LONGEST_PATH: Final = 1024
_LONGEST_NAME: Final = 255


def is_encodable(path: str) -> bool:
    """Whether a file can have that name: text read from files may contain lone surrogates."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def checked_range(path: str, size: int, offset: int, length: int | None) -> tuple[int, int]:
    """The (start, stop) of a range in a file of `size` bytes; CorruptFileError if it is outside."""
    stop = size if length is None else offset + length
    if not 0 <= offset <= stop <= size:
        raise CorruptFileError(
            f"Bytes {offset} to {stop} were requested, but the file has {size} bytes",
            path=path,
            remedy=OUTSIDE_REMEDY,
        )
    return offset, stop
