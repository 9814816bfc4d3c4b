"""What was planned for the rows that a thread decodes, for the code that reads the bytes."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from typing import Any

from lance_engine.fetch.read_ahead import FileBuffers

_current = threading.local()


class reading_planned:  # noqa: N801 - a block, used like a function
    """In the block, this thread finds the bytes of `files` in what was planned for them."""

    __slots__ = ("_files", "_outer")

    def __init__(self, files: Mapping[Any, FileBuffers]) -> None:
        self._files = files

    def __enter__(self) -> None:
        self._outer: Mapping[Any, FileBuffers] | None = getattr(_current, "files", None)
        _current.files = self._files

    def __exit__(self, *_: object) -> None:
        _current.files = self._outer


def planned_for(file: Hashable) -> FileBuffers | None:
    """The planned requests for a file and the current rows, if any."""
    files: Mapping[Any, FileBuffers] | None = getattr(_current, "files", None)
    return None if files is None else files.get(file)
