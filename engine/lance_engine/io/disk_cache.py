"""A disk cache: ranges of immutable files, shared between processes.

Each file has a folder, named by a hash of its location, path and size. Each range is a file in it, named
``<offset>-<length>``, with the bytes and then one CRC-32 per block. A range is published by an atomic rename;
checksums detect damage after a power failure. A process checks each block when it first reads it; after that
it maps long ranges into memory. The modification time of a cache file is the time of its last use.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import struct
import threading
import time
import uuid
import zlib
from dataclasses import dataclass
from typing import Final

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.public import public

DEFAULT_BYTES: Final = 10 << 30
# The folder of this layout version.
_LAYOUT: Final = "lance-ranges-1"
_BLOCK: Final = 64 << 10
_LONG: Final = 256 << 10
# Maximum number of ranges for which a process remembers the checked blocks.
_TESTED_RANGES: Final = 1 << 16
# Disk usage of a small file.
_LEAST: Final = 4 << 10
# Share of the limit in new bytes after which the folder is scanned, and the share that is kept then.
_LOOK_AFTER: Final = 16
_LEFT: Final = 7 / 8
# In seconds: the precision of usage times, and the age of incomplete files of dead processes.
_USED_AGAIN: Final = 60.0
_ABANDONED: Final = 3600.0


@dataclass(frozen=True, slots=True)
class DiskCacheStatistics:
    """What this process read from the cache, and added to it."""

    hits: int = 0
    hit_bytes: int = 0
    misses: int = 0
    added_bytes: int = 0
    damaged: int = 0


class DiskCache:
    """At most about `limit` bytes below `directory`; safe to use in several threads and processes."""

    def __init__(self, directory: str | os.PathLike[str], limit: int) -> None:
        self.directory = os.path.abspath(os.path.expanduser(os.fspath(directory)))
        self.limit = limit
        self._root = os.path.join(self.directory, _LAYOUT)
        try:
            # Data from buckets is private to this user.
            os.makedirs(self._root, mode=0o700, exist_ok=True)
        except OSError as error:
            raise UnsupportedFeatureError(
                f"Cannot create the cache in this folder: {error.strerror}",
                path=self.directory,
                remedy="Use a writable folder",
            ) from None
        self._lock = threading.Lock()
        # Folder -> when it changed last, and the ranges in it.
        self._known: dict[str, tuple[int, list[tuple[int, int]]]] = {}
        # Range -> the file that had this name, and for each of its blocks whether it was tested.
        self._tested: dict[str, tuple[int, bytearray]] = {}
        self._unseen = limit  # the current size is unknown
        self._counts = DiskCacheStatistics()

    @property
    def statistics(self) -> DiskCacheStatistics:
        """Statistics of this process."""
        return self._counts

    def read(self, file: str, offset: int, length: int) -> memoryview | None:
        """A range of a file, combined from cached ranges; None if some of it is missing.

        `file` identifies the file and its content.
        """
        folder = self._folder(file)
        data = self._assemble(folder, offset, length)
        with self._lock:
            counts = self._counts
            if data is None:
                self._counts = _plus(counts, misses=1)
            else:
                self._counts = _plus(counts, hits=1, hit_bytes=length)
        return data

    def add(self, file: str, offset: int, data: bytes | memoryview) -> None:
        """Cache a range of a file. A full or broken disk is not an error."""
        size = max(_LEAST, len(data))
        if not data or size > self.limit // _LOOK_AFTER:
            return
        folder = self._folder(file)
        target = os.path.join(folder, f"{offset}-{len(data)}")
        unfinished = f"{target}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb", buffering=0) as output:
                view = memoryview(data)
                for part in (view, memoryview(_checksums(view))):
                    while part:
                        part = part[output.write(part) :]
            os.replace(unfinished, target)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            return
        with self._lock:
            self._counts = _plus(self._counts, added_bytes=len(data))
            self._unseen += size
            full = self._unseen >= self.limit // _LOOK_AFTER
            if full:
                self._unseen = 0
        if full:
            self._make_room()

    def _folder(self, file: str) -> str:
        name = hashlib.sha256(file.encode()).hexdigest()
        return os.path.join(self._root, name[:2], name[2:])

    def _assemble(self, folder: str, offset: int, length: int) -> memoryview | None:
        parts: list[memoryview] = []
        end = offset + length
        ranges = self._ranges(folder)
        while offset < end:
            # The range with an earlier start that extends furthest.
            best = max(
                ((start + size, start) for start, size in ranges if start <= offset < start + size),
                default=None,
            )
            if best is None:
                return None
            stop, start = best
            part = self._read_part(folder, start, stop - start, offset, min(stop, end))
            if part is None:
                return None
            parts.append(part)
            offset += len(part)
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _ranges(self, folder: str) -> list[tuple[int, int]]:
        try:
            changed = os.stat(folder).st_mtime_ns
            known = self._known.get(folder)
            if known is not None and known[0] == changed:
                return known[1]
            ranges = [span for name in os.listdir(folder) if (span := _parse(name)) is not None]
        except OSError:
            return []
        if time.time_ns() - changed > 1_000_000_000:
            # Changes in the same clock tick would not be noticed.
            self._known[folder] = (changed, ranges)
        return ranges

    def _read_part(self, folder: str, start: int, size: int, begin: int, end: int) -> memoryview | None:
        """Bytes `begin` to `end` of the file, of the `size` bytes from `start`; None if they are damaged."""
        path = os.path.join(folder, f"{start}-{size}")
        first = (begin - start) // _BLOCK
        last = -(-(end - start) // _BLOCK)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            blocks = -(-size // _BLOCK)
            if status.st_size != size + 4 * blocks:
                raise OSError("not the range of its name")
            if time.time() - status.st_mtime > _USED_AGAIN:
                with contextlib.suppress(OSError):
                    os.utime(descriptor)
            tested = self._blocks_tested(path, status.st_ino, blocks)
            is_tested = tested.find(0, first, last) < 0
            if is_tested and end - begin >= _LONG:
                return _mapped(descriptor, begin - start, end - begin)
            low, high = (
                (begin - start, end - start) if is_tested else (first * _BLOCK, min(last * _BLOCK, size))
            )
            # Long ranges use recycled memory.
            data = (
                kernels.new_buffer(high - low).data
                if high - low >= _LONG
                else memoryview(bytearray(high - low))
            )
            count = os.preadv(descriptor, [data], low)
            sums = b"" if is_tested else os.pread(descriptor, (last - first) * 4, size + first * 4)
        except OSError:
            self._drop(path)
            return None
        finally:
            os.close(descriptor)
        if count != high - low or not (is_tested or _checksums(data) == sums):
            self._drop(path)
            return None
        tested[first:last] = bytes([1]) * (last - first)
        return data[begin - start - low : end - start - low]

    def _blocks_tested(self, path: str, inode: int, blocks: int) -> bytearray:
        """For each block of a range, whether this process has verified its checksum; modifiable."""
        known = self._tested.get(path)
        if known is None or known[0] != inode:
            if len(self._tested) >= _TESTED_RANGES:
                self._tested.clear()
            known = self._tested[path] = (inode, bytearray(blocks))
        return known[1]

    def _drop(self, path: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(path)
        self._tested.pop(path, None)
        with self._lock:
            self._counts = _plus(self._counts, damaged=1)

    def _make_room(self) -> None:
        """Remove the least recently used data if the limit is exceeded."""
        used: list[tuple[float, int, str]] = []
        now = time.time()
        for folder, _, names in os.walk(self._root):
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    status = os.stat(path)
                    if name.endswith(".tmp") and now - status.st_mtime > _ABANDONED:
                        os.unlink(path)
                        continue
                    used.append((status.st_mtime, max(_LEAST, status.st_size), path))
        total = sum(size for _, size, _ in used)
        if total > self.limit * (1 - 1 / _LOOK_AFTER):
            for _, size, path in sorted(used):
                if total <= self.limit * _LEFT:
                    break
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    total -= size
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.dirname(path))
        self._known.clear()


def _mapped(descriptor: int, offset: int, length: int) -> memoryview:
    """Bytes of a file without a copy. Cache files are removed or replaced, but never modified."""
    begin = offset - offset % mmap.ALLOCATIONGRANULARITY
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    mapping = mmap.mmap(descriptor, offset + length - begin, flags=flags, prot=mmap.PROT_READ, offset=begin)
    return memoryview(mapping)[offset - begin :]


def _checksums(data: memoryview) -> bytes:
    sums = [zlib.crc32(data[start : start + _BLOCK]) for start in range(0, len(data), _BLOCK)]
    return struct.pack(f"<{len(sums)}I", *sums)


def _parse(name: str) -> tuple[int, int] | None:
    offset, _, length = name.partition("-")
    return (int(offset), int(length)) if offset.isdigit() and length.isdigit() else None


def _plus(counts: DiskCacheStatistics, **more: int) -> DiskCacheStatistics:
    names = DiskCacheStatistics.__dataclass_fields__
    return DiskCacheStatistics(**{name: getattr(counts, name) + more.get(name, 0) for name in names})


_cache: DiskCache | None = None
_asked_environment = False


@public
def set_cache(directory: str | os.PathLike[str] | None, bytes: int = DEFAULT_BYTES) -> None:
    """Cache data of object stores in the folder `directory`, up to `bytes` bytes; None turns it off.

    It applies to datasets that are opened from now on. Processes may share a folder. By default, the
    environment variable ``LANCE_SQL_CACHE_DIR`` sets the folder, and ``LANCE_SQL_CACHE_BYTES`` the limit.
    """
    global _cache, _asked_environment
    if bytes < 1:
        raise UnsupportedFeatureError(
            f"A cache of {bytes} bytes is too small", remedy="Use set_cache(None) to turn it off"
        )
    _asked_environment = True
    _cache = None if directory is None else DiskCache(directory, bytes)


def disk_cache() -> DiskCache | None:
    """The cache to use, or None."""
    if not _asked_environment and (directory := os.environ.get("LANCE_SQL_CACHE_DIR")):
        text = os.environ.get("LANCE_SQL_CACHE_BYTES", str(DEFAULT_BYTES))
        if not text.isdigit():
            raise UnsupportedFeatureError(
                f"LANCE_SQL_CACHE_BYTES is not a number of bytes: {text}", remedy="Write it as 10000000000"
            )
        set_cache(directory, int(text))
    return _cache
