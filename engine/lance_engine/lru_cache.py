"""A cache of the keys that were used last."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar, overload

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Default = TypeVar("Default")

_MISSING: Final = object()


class LruCache(Generic[Key, Value]):
    """The values of at most `most` keys; a new one replaces the key that was not used for the longest time.

    Safe to use from several threads: two that look for the same key at once may both compute its value.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        #: the last used key is the last
        self._values: dict[Key, Value] = {}

    @overload
    def get(self, key: Key) -> Value | None: ...
    @overload
    def get(self, key: Key, default: Default) -> Value | Default: ...
    def get(self, key: Key, default: Any = None) -> Any:
        value = self._values.pop(key, _MISSING)
        if value is _MISSING:
            return default
        self._values[key] = value  # type: ignore[assignment]
        return value

    def computed(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key; `compute` is called if it is not kept."""
        value: Any = self.get(key, _MISSING)
        if value is not _MISSING:
            return value  # type: ignore[no-any-return]
        new = self[key] = compute()
        return new

    def __setitem__(self, key: Key, value: Value) -> None:
        values = self._values
        values.pop(key, None)
        values[key] = value
        while len(values) > self._most:
            try:
                values.pop(next(iter(values)), None)
            except (RuntimeError, StopIteration):  # another thread has changed it meanwhile
                continue

    def values(self) -> list[Value]:
        return list(self._values.values())

    def clear(self) -> None:
        self._values.clear()

    def __len__(self) -> int:
        return len(self._values)
