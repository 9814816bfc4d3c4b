"""Files that are completed in the background, while the next ones are written."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Final, Self

from lance_engine.io.store import Sink, Store
from lance_engine.tasks import Pool, Task

# Maximum number of files being uploaded, each of which has at most a few parts in memory.
_AT_ONCE: Final = 4


class Closing:
    """Creates files in `store`, and closes them in the background if that takes a request.

    The context manager waits for all of them; a successful block fails if one of them does.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        is_local = store.local_path("data") is not None
        self._pool = None if is_local else Pool(_AT_ONCE, "lance-close")
        self._pending: deque[Task[None]] = deque()

    def create(self, path: str) -> Sink:
        """Open a file for streaming."""
        sink = self._store.create(path)
        return sink if self._pool is None else _BackgroundSink(sink, self)

    def close(self, sink: Sink) -> None:
        """Close in the background; waits if too many files are being uploaded."""
        assert self._pool is not None
        try:
            while len(self._pending) >= _AT_ONCE:
                self._pending.popleft().result()
        except BaseException:
            sink.discard()
            raise
        self._pending.append(self._pool.submit(sink.close))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is None:
            return
        # Written files must not be removed before the writes have ended.
        self._pool.close(cancels=False)
        if error is None:
            for task in self._pending:
                task.result()


class _BackgroundSink(Sink):
    """`sink`, closed by `closing`."""

    def __init__(self, sink: Sink, closing: Closing) -> None:
        self._sink = sink
        self._closing = closing

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        return self._sink.write(data)

    def tell(self) -> int:
        return self._sink.tell()

    def close(self) -> None:
        self._closing.close(self._sink)

    def discard(self) -> None:
        self._sink.discard()
