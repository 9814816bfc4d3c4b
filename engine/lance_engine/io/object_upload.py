"""Files being written to object stores: small ones in one request, others in parts while they grow."""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Final, Protocol

from lance_engine.io.store import Sink

# A file has at most ten thousand parts: 100 GB.
PART_BYTES: Final = 10 << 20
# Parts on their way to the store, and parts that wait for that; one more is being filled.
_AT_ONCE: Final = 4
_WAITING: Final = 1


class UploadTarget(Protocol):
    """The store that a file is written to."""

    def put(self, path: str, data: bytes) -> None:
        """Write or replace a whole file."""
        ...

    def upload(self, path: str, parts: Iterator[bytearray], part_bytes: int, at_once: int) -> None:
        """Write or replace a file from parts; nothing remains of it if the iterator raises."""
        ...


class ObjectSink(Sink):
    """A file that appears when it is closed; its parts are uploaded while the writer continues."""

    def __init__(self, store: UploadTarget, path: str) -> None:
        self._store = store
        self._path = path
        self._part = bytearray()
        self._upload: _Upload | None = None
        self._written = 0
        self._done = False

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        view = memoryview(data).cast("B")
        start = 0
        while start < len(view):
            end = start + PART_BYTES - len(self._part)
            self._part += view[start:end]
            start = end
            if len(self._part) >= PART_BYTES:
                self._send()
        self._written += len(view)
        return len(view)

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        if self._done:
            return
        self._done = True
        if self._upload is None:
            self._store.put(self._path, bytes(self._part))
        else:
            if self._part:
                self._upload.send(self._part)
            self._upload.finish()
        self._part = bytearray()

    def discard(self) -> None:
        if self._done:
            return
        self._done = True
        self._part = bytearray()
        if self._upload is not None:
            self._upload.abort()

    def __del__(self) -> None:
        self.discard()

    def _send(self) -> None:
        if self._upload is None:
            self._upload = _Upload(self._store, self._path)
        self._upload.send(self._part)
        self._part = bytearray()


class _AbortedError(Exception):
    """Aborts an upload without leaving anything behind."""


class _Upload:
    """An upload in parts, in its own thread."""

    def __init__(self, store: UploadTarget, path: str) -> None:
        self._store = store
        self._path = path
        self._parts: queue.Queue[bytearray | _AbortedError | None] = queue.Queue(_WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lance-upload", daemon=True)
        _open.add(self)
        self._thread.start()

    def send(self, part: bytearray | _AbortedError | None) -> None:
        """Hand over the next part; waits while enough of them are in flight."""
        while self._thread.is_alive():
            try:
                self._parts.put(part, timeout=0.1)
            except queue.Full:
                continue
            return
        self._raise()

    def finish(self) -> None:
        """Wait until the file exists."""
        self.send(None)
        self._thread.join()
        self._raise()

    def abort(self) -> None:
        """Wait until everything that was sent is removed."""
        with contextlib.suppress(Exception):
            self.send(_AbortedError())
        self._thread.join()

    def _run(self) -> None:
        try:
            self._store.upload(self._path, self._received(), PART_BYTES, _AT_ONCE)
        except BaseException as error:
            self._error = error
        finally:
            _open.discard(self)

    def _received(self) -> Iterator[bytearray]:
        while (part := self._parts.get()) is not None:
            if isinstance(part, _AbortedError):
                raise part
            yield part

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


_open: weakref.WeakSet[_Upload] = weakref.WeakSet()


@atexit.register
def _abort_all() -> None:
    """Leave no parts behind, nor threads in the middle of something, when the process ends."""
    for upload in list(_open):
        upload.abort()
