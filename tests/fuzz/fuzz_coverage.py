"""Which code an input has reached: blocks of the sanitized kernels, or lines of our Python."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol


class Coverage(Protocol):
    def start(self) -> None:
        """An input begins."""

    def stop(self) -> int:
        """It ends: how much it reached that none did before."""

    def reached(self) -> int:
        """How much all inputs have reached."""


class KernelCoverage:
    """Basic blocks of the kernels, counted by the kernels themselves (engine/kernels/core/coverage.cpp).

    A new one starts counting from zero.
    """

    def __init__(self, kernels: Path) -> None:
        library = ctypes.CDLL(str(kernels))
        library.lance_coverage_reset()
        self.start = library.lance_coverage_start
        self.stop = library.lance_coverage_stop
        self.reached = library.lance_coverage_blocks
        self.stop.restype = self.reached.restype = ctypes.c_size_t


class LineCoverage:
    """Lines of `lance_engine`."""

    def __init__(self) -> None:
        self._seen: set[tuple[CodeType, int]] = set()
        self._now: set[tuple[CodeType, int]] = set()

    def start(self) -> None:
        self._now = set()
        sys.settrace(self._trace)

    def stop(self) -> int:
        sys.settrace(None)
        fresh = len(self._now - self._seen)
        self._seen |= self._now
        return fresh

    def reached(self) -> int:
        return len(self._seen)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if f"{os.sep}lance_engine{os.sep}" not in frame.f_code.co_filename:
            return None
        self._now.add((frame.f_code, frame.f_lineno))
        return self._trace
