"""Datasets on any storage that fsspec supports: object stores, HTTP, HDFS."""

from __future__ import annotations

import base64
import contextlib
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from lance_engine.errors import (
    CorruptFileError,
    LanceError,
    StorageUnavailableError,
    UnsupportedFeatureError,
)
from lance_engine.io.access import access_explained, codes
from lance_engine.io.storage_options import fsspec_options, max_in_flight
from lance_engine.io.store import OUTSIDE_REMEDY, Sink, checked_path, checked_range, not_atomic
from lance_engine.legible import without_secrets

# File systems whose "create" mode is one conditional request (If-None-Match: *) or its equivalent. fsspec's
# default, which first looks and then writes, loses commits.
CONDITIONAL_PUT = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"})
# Answers to a conditional request that mean that the file exists, or that another writer is creating it.
_TAKEN = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict", "409", "conditionNotMet"})
_BEYOND_END = frozenset({"InvalidRange", "416"})
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "lance-sql[s3]"),
    **dict.fromkeys(("gs", "gcs"), "lance-sql[gcs]"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "lance-sql[azure]"),
}


class FsspecStore:
    """A folder of an fsspec file system, found by its URI such as ``s3://bucket/table.lance``."""

    def __init__(self, uri: str, storage_options: Mapping[str, Any] | None = None) -> None:
        scheme = uri.partition("://")[0].lower()
        try:
            import fsspec
        except ImportError as error:
            raise UnsupportedFeatureError(
                "Paths with a scheme need fsspec",
                path=uri,
                remedy=f"pip install {_PACKAGES.get(scheme, 'fsspec')}",
            ) from error
        self._uri = uri.rstrip("/")
        if scheme in ("http", "https") and urlsplit(uri).query:
            raise UnsupportedFeatureError(
                "The address of a dataset cannot have a query: a dataset is many files",
                path=uri,
                remedy="Leave out the ? and the rest; pass a token in the headers of storage_options",
            )
        self._given = dict(storage_options or {})
        address, options = _without_user(self._uri, fsspec_options(scheme, storage_options or {}))
        if scheme in _PACKAGES:
            # Other processes write as well: earlier listings cannot be used.
            options.setdefault("use_listings_cache", False)
        try:
            with self._explained():
                self._fs, root = fsspec.core.url_to_fs(address, **options)
        except (ImportError, ValueError) as error:
            remedy = f"pip install {_PACKAGES[scheme]}" if scheme in _PACKAGES else ""
            raise UnsupportedFeatureError(f"Unsupported path: {error}", path=uri, remedy=remedy) from error
        self._root = root.rstrip("/")
        protocol = self._fs.protocol
        self._protocols = {protocol} if isinstance(protocol, str) else set(protocol)

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def max_in_flight(self) -> int | None:
        """The number of concurrent requests that the options allow."""
        return max_in_flight(self._given)

    def __repr__(self) -> str:
        return f"FsspecStore({without_secrets(self._uri)!r})"

    def size(self, path: str) -> int:
        with self._explained():
            return int(self._fs.size(self._full(path)))

    def modified(self, path: str) -> datetime.datetime | None:
        try:
            with self._explained():
                written: datetime.datetime = self._fs.modified(self._full(path))
        except NotImplementedError:
            return None
        return written if written.tzinfo else written.replace(tzinfo=datetime.UTC)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        data: bytes
        if length is None:
            with self._explained():
                data = self._fs.cat_file(self._full(path), start=offset or None)
        else:
            data = b""
            if length:
                with self._explained(), _ranges_checked(path):
                    data = self._fs.cat_file(self._full(path), start=offset, end=offset + length)
            # For a range beyond the end, backends return the bytes that exist.
            checked_range(path, offset + len(data), offset, length)
        return data

    def expect_size(self, path: str, size: int) -> None:
        pass

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        # Backends differ in how they treat a range from the end.
        size = self.size(path)
        return self.read(path, max(0, size - length), min(size, length)), size

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        full = self._full(path)
        wanted = [index for index, (_, length) in enumerate(ranges) if length]
        with self._explained(), _ranges_checked(path):
            answers = self._fs.cat_ranges(
                [full] * len(wanted),
                [ranges[index][0] for index in wanted],
                [sum(ranges[index]) for index in wanted],
                on_error="raise",
            )
        buffers = [b""] * len(ranges)
        for index, data in zip(wanted, answers, strict=True):
            offset, length = ranges[index]
            checked_range(path, offset + len(data), offset, length)
            buffers[index] = data
        return buffers

    def list(self, prefix: str) -> list[str]:
        folder = self._full(prefix) if prefix else self._root
        self._fs.invalidate_cache(folder)
        try:
            with self._explained():
                names = self._fs.find(folder)
        except FileNotFoundError:
            return []
        start = len(self._root) + 1
        return sorted(name[start:] for name in names)

    def names(self, folder: str) -> Sequence[str]:
        path = self._full(folder) if folder else self._root
        self._fs.invalidate_cache(path)
        try:
            with self._explained():
                return [name.rstrip("/").rpartition("/")[2] for name in self._fs.ls(path, detail=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        return self.names(folder), True

    def exists(self, path: str) -> bool:
        return bool(self._fs.isfile(self._full(path)))

    def put(self, path: str, data: bytes) -> None:
        self._make_parent(path)
        with self._explained():
            self._fs.pipe_file(self._full(path), bytes(data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        if not self._protocols & CONDITIONAL_PUT:
            raise not_atomic(self._uri)
        try:
            with self._explained():
                self._fs.pipe_file(self._full(path), bytes(data), mode="create")
        except (FileExistsError, LanceError):
            raise
        except Exception as error:
            if codes(error) & _TAKEN:
                raise FileExistsError(path) from error
            raise

    def delete(self, path: str) -> None:
        with self._explained(), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._full(path))

    def create(self, path: str) -> Sink:
        self._make_parent(path)
        with self._explained():
            return _FsspecSink(self._fs, self._full(path))

    def local_path(self, path: str) -> str | None:
        return None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with access_explained(self._uri, self._given):
                yield
        except LanceError:
            raise
        except Exception as error:
            if not _is_unreachable(error):
                raise
            raise StorageUnavailableError(
                f"Storage is not responding: {error or type(error).__name__}",
                path=self._uri,
                remedy="Check the address and the network",
            ) from error

    def _full(self, path: str) -> str:
        return f"{self._root}/{checked_path(path)}"

    def _make_parent(self, path: str) -> None:
        # Object stores have no folders; asking them to make one can create buckets.
        if not self._protocols & CONDITIONAL_PUT:
            self._fs.makedirs(self._full(path).rpartition("/")[0], exist_ok=True)


def _is_unreachable(error: Exception) -> bool:
    """Whether there was no connection, or it broke; aiohttp has its own classes for that."""
    return isinstance(error, ConnectionError | TimeoutError) or any(
        kind.__name__ == "ClientConnectionError" for kind in type(error).__mro__
    )


def _without_user(uri: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The address of a web server without the user and password in it, which its file system would log."""
    parts = urlsplit(uri)
    user, at, host = parts.netloc.rpartition("@")
    if parts.scheme.lower() not in ("http", "https") or not at:
        return uri, options
    basic = base64.b64encode(":".join(unquote(part) for part in (*user.split(":", 1), "")[:2]).encode())
    headers = {"Authorization": f"Basic {basic.decode()}", **(options.get("headers") or {})}
    return parts._replace(netloc=host).geturl(), {**options, "headers": headers}


@contextlib.contextmanager
def _ranges_checked(path: str) -> Iterator[None]:
    """A range that begins beyond the end is an error of the request for some backends."""
    try:
        yield
    except Exception as error:
        if codes(error) & _BEYOND_END:
            raise CorruptFileError(
                "Requested bytes past the end of the file",
                path=path,
                remedy=OUTSIDE_REMEDY,
            ) from error
        raise


class _FsspecSink(Sink):
    """A multi-part upload: object stores show the object when it is completed."""

    def __init__(self, fs: Any, full_path: str) -> None:
        self._fs = fs
        self._path = full_path
        self._file = fs.open(full_path, "wb")
        self._written = 0
        self._done = False

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        self._file.write(data)
        length = len(data) if not isinstance(data, memoryview) else data.nbytes
        self._written += length
        return length

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        if not self._done:
            self._done = True
            self._file.close()

    def discard(self) -> None:
        if self._done:
            return
        self._done = True
        with contextlib.suppress(Exception):
            self._file.discard()
            if hasattr(self._file, "buffer"):
                # Otherwise the garbage collector would close the upload, which completes it.
                self._file.buffer = None
                self._file.closed = True
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path)
