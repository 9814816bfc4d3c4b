"""Datasets in a local folder."""

from __future__ import annotations

import contextlib
import datetime
import errno
import io
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.io.external_access import ExternalAccess
from lance_engine.io.local_files import LocalErrors, check_is_file, reachable
from lance_engine.io.store import Sink, Store, checked_path, checked_range

_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# os.write and os.pread transfer a little less than 2 GiB at a time on Linux.
_MAX_TRANSFER = 1 << 30


_CLOSED: Final = ExternalAccess()


class LocalStore:
    """A folder; it need not exist before the first file is written.

    Symbolic links in it that lead out of it are followed as far as `access` allows, and never to list or to
    remove files.
    """

    def __init__(self, root: str | os.PathLike[str], access: ExternalAccess = _CLOSED) -> None:
        self._root = os.path.abspath(os.fspath(root))
        self._access = access

    @property
    def uri(self) -> str:
        return self._root

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    def size(self, path: str) -> int:
        full = self._full(path)
        with LocalErrors(full):
            status = os.stat(full)
            check_is_file(full, status.st_mode)
            return status.st_size

    def modified(self, path: str) -> datetime.datetime | None:
        full = self._full(path)
        with LocalErrors(full):
            return datetime.datetime.fromtimestamp(os.stat(full).st_mtime, datetime.UTC)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        full = self._full(path)
        with LocalErrors(full), _open_file(full) as file:
            return self._pread(file.fileno(), path, offset, length)

    def expect_size(self, path: str, size: int) -> None:
        pass

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        full = self._full(path)
        with LocalErrors(full), _open_file(full) as file:
            size = os.fstat(file.fileno()).st_size
            return self._pread(file.fileno(), path, max(0, size - length), min(size, length)), size

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        full = self._full(path)
        with LocalErrors(full), _open_file(full) as file:
            return [self._pread(file.fileno(), path, offset, length) for offset, length in ranges]

    def list(self, prefix: str) -> list[str]:
        folder = reachable(self._root, checked_path(prefix), None) if prefix else self._root
        paths: list[str] = []
        with LocalErrors(folder):
            for parent, _, names in os.walk(folder, onerror=_unless_missing):
                relative = os.path.relpath(parent, self._root).replace(os.sep, "/")
                paths += names if relative == "." else [f"{relative}/{name}" for name in names]
        return sorted(paths)

    def names(self, folder: str) -> Sequence[str]:
        full = reachable(self._root, checked_path(folder), None)
        with LocalErrors(full):
            try:
                return os.listdir(full)
            except (FileNotFoundError, NotADirectoryError):
                return []

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        return self.names(folder), True

    def exists(self, path: str) -> bool:
        return os.path.isfile(self._full(path))

    def put(self, path: str, data: bytes) -> None:
        with self.create(path) as sink:
            sink.write(data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        full = self._full(path)
        with LocalErrors(full, writing=True):
            sink = _LocalSink(full)
            try:
                sink.write(data)
                sink.publish_if_absent()
            except OSError as error:
                if error.errno in _NO_HARD_LINKS:
                    raise UnsupportedFeatureError(
                        "Commits need hard links, which this file system does not support",
                        path=full,
                        remedy="Use a manifest store that all writers can access: "
                        "storage_options={'manifest_store': 'sqlite:///mnt/share/manifests.db'}; or write to "
                        "another file system",
                    ) from error
                raise
            finally:
                sink.discard()

    def delete(self, path: str) -> None:
        folder, _, name = checked_path(path).rpartition("/")
        # Only the link is removed: its target stays.
        full = os.path.join(reachable(self._root, folder, None) if folder else self._root, name)
        with LocalErrors(full):
            Path(full).unlink(missing_ok=True)

    def create(self, path: str) -> Sink:
        full = self._full(path)
        with LocalErrors(full, writing=True):
            return _LocalSink(full)

    def local_path(self, path: str) -> str | None:
        return self._full(path)

    def _full(self, path: str) -> str:
        return reachable(self._root, checked_path(path), self._access)

    @staticmethod
    def _pread(descriptor: int, path: str, offset: int, length: int | None) -> bytes:
        start, stop = checked_range(path, os.fstat(descriptor).st_size, offset, length)
        data = os.pread(descriptor, min(stop - start, _MAX_TRANSFER), start)
        if len(data) == stop - start:
            return data
        parts = [data]
        start += len(data)
        while data and start < stop:
            data = os.pread(descriptor, min(stop - start, _MAX_TRANSFER), start)
            parts.append(data)
            start += len(data)
        checked_range(path, start, offset, stop - offset)
        return b"".join(parts)


def _open_file(path: str) -> io.FileIO:
    # The descriptor has one owner from the start: two owners would close it twice after an interrupt, and
    # the second time it may belong to the file of another thread.
    try:
        file = io.FileIO(path, "rb", opener=_without_waiting)
    except IsADirectoryError:
        check_is_file(path, stat.S_IFDIR)
        raise
    try:
        check_is_file(path, os.fstat(file.fileno()).st_mode)
    except BaseException:
        file.close()
        raise
    return file


def _without_waiting(path: str, flags: int) -> int:
    # Opening a pipe would wait for its other end.
    return os.open(path, flags | os.O_NONBLOCK)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def write_in_place(path: str, data: bytes) -> None:
    """Write a small file that may be lost or seen half-written, without the cost of replacing it.

    A file with several hard links, or anything but a regular file, is left as it is.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        status = os.fstat(descriptor)
        if status.st_nlink != 1 or not stat.S_ISREG(status.st_mode):
            return
        os.write(descriptor, data)
        if os.fstat(descriptor).st_size != len(data):
            os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def removing_new_folders(store: Store) -> Iterator[None]:
    """If the block fails, remove the empty folders of a dataset that it created."""
    data = store.local_path("data")
    root = None if data is None else os.path.dirname(data)
    if root is None or os.path.lexists(root):
        yield
        return
    try:
        yield
    except BaseException:
        for folder, _, _ in os.walk(root, topdown=False):
            with contextlib.suppress(OSError):  # it contains files of another process
                os.rmdir(folder)
        raise


class _LocalSink(Sink):
    """Writes to a temporary name in the target's folder, so that publishing is one rename or link."""

    def __init__(self, target: str) -> None:
        self._target = target
        folder, name = os.path.split(target)
        # A hidden name with its own ending: no reader takes it for a manifest or a data file. It contains
        # the target's name, so a cleanup after a killed writer finds it too.
        self._staging = os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.tmp")
        try:
            self._file = open(self._staging, "xb")  # noqa: SIM115 - closed by close() or discard()
        except FileNotFoundError:
            self._file = self._open_in_new_folder(folder)

    def _open_in_new_folder(self, folder: str) -> io.BufferedWriter:
        for attempt in range(3):
            try:
                os.makedirs(folder, exist_ok=True)
            except FileExistsError as error:  # which would say that the file itself is taken
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from error
            try:
                return open(self._staging, "xb")
            except FileNotFoundError:  # another writer failed, and removed the empty folder
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        with LocalErrors(self._target, writing=True):
            return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if self._file.closed:
            return
        with LocalErrors(self._target, writing=True):
            try:
                self._file.close()
                os.replace(self._staging, self._target)
            except BaseException:
                Path(self._staging).unlink(missing_ok=True)
                raise

    def publish_if_absent(self) -> None:
        """Close under the target name unless it is taken (FileExistsError): a hard link never replaces."""
        self._file.close()
        try:
            os.link(self._staging, self._target)
        finally:
            os.unlink(self._staging)

    def discard(self) -> None:
        if self._file.closed:
            return
        try:
            with contextlib.suppress(OSError):  # unwritten data may be lost: the disk may be full
                self._file.close()
        finally:
            Path(self._staging).unlink(missing_ok=True)
