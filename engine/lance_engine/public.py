"""Classes that users hold, and that have members for other modules of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar


class Public:
    """A class whose `dir` shows what users may use. The names in `_ours` may change with any release."""

    __slots__ = ()

    _ours: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> Iterable[str]:
        return sorted(set(super().__dir__()) - self._ours)
