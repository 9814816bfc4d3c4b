"""Facts about an object, kept while it is alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")
Default = TypeVar("Default")


class WeakIdentityDict(Generic[Owner, Value]):
    """A value for each of some objects, by identity; it is removed with its owner.

    In a `WeakKeyDictionary`, Python code runs when an owner is deleted; an interrupt then is lost.
    Here the dictionary itself drops the entry. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], Value]] = {}

    @overload
    def get(self, owner: Owner) -> Value | None: ...
    @overload
    def get(self, owner: Owner, default: Default) -> Value | Default: ...
    def get(self, owner: Owner, default: Any = None) -> Any:
        entry = self._entries.get(id(owner))
        return default if entry is None else entry[1]

    def __contains__(self, owner: object) -> bool:
        return id(owner) in self._entries

    def __getitem__(self, owner: Owner) -> Value:
        return self._entries[id(owner)][1]

    def __setitem__(self, owner: Owner, value: Value) -> None:
        self._entries[id(owner)] = self._entry(owner, value)

    def setdefault(self, owner: Owner, value: Value) -> Value:
        """The value of `owner`, which becomes `value` if it had none."""
        return self._entries.setdefault(id(owner), self._entry(owner, value))[1]

    def computed(self, owner: Owner, compute: Callable[[], Value]) -> Value:
        """The value of `owner`; `compute` is called if it had none."""
        entry = self._entries.get(id(owner))
        return self.setdefault(owner, compute()) if entry is None else entry[1]

    def pop(self, owner: Owner) -> Value | None:
        """Remove the value of `owner`, and return it."""
        entry = self._entries.pop(id(owner), None)
        return None if entry is None else entry[1]

    def __len__(self) -> int:
        return len(self._entries)

    def _entry(self, owner: Owner, value: Value) -> tuple[weakref.ref[Any], Value]:
        # Called with the reference, which pop returns if there is no entry.
        return weakref.ref(owner, partial(self._entries.pop, id(owner))), value


class LiveObjects(WeakIdentityDict[Owner, None]):
    """Objects, as long as they are alive. Unlike a `WeakSet`, it runs no Python code when one is deleted."""

    def add(self, owner: Owner) -> None:
        self[owner] = None

    def __iter__(self) -> Iterator[Owner]:
        for reference, _ in list(self._entries.values()):
            owner = reference()
            if owner is not None:
                yield owner
