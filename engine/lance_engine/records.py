"""Immutable classes of a few fields, like ``dataclass(frozen=True, slots=True)``, made in less time.

`dataclass` compiles six functions for each class, which would take an eighth of the time of the first query
of a process. Here one is compiled, and the others are shared. What `dataclasses` does with instances works:
`replace`, `fields`, `asdict`, patterns of ``match``. Modules that the first query imports use
this. Subclasses are records as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, eq: bool = True, weakref_slot: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: Any = None, /, *, eq: bool = True, weakref_slot: bool = False) -> Any:
    """Make an immutable class of the annotated names; with ``eq=False`` it keeps its equality and hash."""
    if cls is None:
        return lambda cls: _made(cls, eq, weakref_slot)
    return _made(cls, eq, weakref_slot)


def _made(cls: Any, eq: bool, weakref_slot: bool) -> Any:
    # A class with an `__eq__` of its own has no hash, as far as Python can tell.
    written = {name for name, value in vars(cls).items() if (name, value) != ("__hash__", None)}
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, weakref_slot=weakref_slot)(cls)
    given = {**_SHARED, "__init__": _initializer(cls)}
    if eq:
        fields = dataclasses.fields(cls)
        values = _values_of([field.name for field in fields if field.compare])
        hashed = _values_of([f.name for f in fields if (f.compare if f.hash is None else f.hash)])
        given["__eq__"] = lambda self, other: (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )
        given["__hash__"] = lambda self: hash(hashed(self))
    for name in given.keys() - written:
        setattr(cls, name, given[name])
    return cls


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _initializer(cls: Any) -> Callable[..., None]:
    """``__init__``, which sets the fields, and then calls ``__post_init__`` if there is one."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": dataclasses.MISSING}
    arguments, lines = ["self"], []
    fields = dataclasses.fields(cls)
    for field in fields:
        name = value = field.name
        if field.default is not dataclasses.MISSING:
            known[f"_of_{name}"] = field.default
            arguments.append(f"{name}=_of_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_of_{name}"] = field.default_factory
            arguments.append(f"{name}=_unset")
            value = f"_of_{name}() if {name} is _unset else {name}"
        else:
            arguments.append(name)
        lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n    " + "\n    ".join(lines or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]
    made.__module__, made.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    made.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return made


def _repr(self: Any) -> str:
    fields = (field for field in dataclasses.fields(self) if field.repr)
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields)
    return f"{type(self).__qualname__}({shown})"


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _setattr(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED: Final[dict[str, Any]] = {
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__repr__": _repr,
    "__setattr__": _setattr,
    "__setstate__": _setstate,
}
