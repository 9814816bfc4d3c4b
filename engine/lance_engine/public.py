"""What users call: classes that show what is for them, functions that know what a wrong option may mean."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from lance_engine.errors import InvalidArgumentError

F = TypeVar("F", bound=Callable[..., Any])

#: What options of other libraries may be called here; the first that a function has.
_OTHER_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "condition": ("filter", "where"),
    "database": ("directory",),
    "distance_type": ("metric",),
    "filter": ("where",),
    "ids": ("row_ids", "positions"),
    "index_type": ("kind",),
    "indices": ("row_ids", "positions"),
    "limit": ("k", "num_rows", "max_rows"),
    "n": ("k", "num_rows", "max_rows", "size"),
    "path": ("uri", "directory"),
    "predicate": ("where", "filter"),
    "query": ("text", "filter"),
    "statement": ("text",),
    "top_k": ("k",),
    "updates": ("values",),
    "vector": ("query",),
    "where": ("filter",),
}


def public(function: F) -> F:
    """A function that answers an option it does not have with the name of the one that was meant."""
    if function.__code__.co_flags & inspect.CO_VARKEYWORDS or not _options(function):
        return function

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # `function` has run
            unknown = [name for name in options if name not in _options(function)]
            if not unknown:
                raise
        raise unknown_option(function, unknown[0])

    return call  # type: ignore[return-value]


def unknown_option(function: Callable[..., Any], name: str) -> InvalidArgumentError:
    """The error for an option `name` that `function` does not have."""
    from lance_engine.spelling import nearest

    options = _options(function)
    near = next((option for option in _OTHER_OPTIONS.get(name, ()) if option in options), None)
    near = near or nearest(name.lower(), options)
    remedy = f"Did you mean {near!r}?" if near else f"It has {', '.join(options)}"
    return InvalidArgumentError(f"Unknown option {name!r} of {function.__name__}()", remedy=remedy)


def _options(function: Callable[..., Any]) -> list[str]:
    """The parameters of a function or method that can be given by name."""
    code = inspect.unwrap(function).__code__
    names = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    return [name for name in names if name not in ("self", "cls")]


class Public:
    """A class whose `dir` shows what users may use. The names in `_ours` may change with any release."""

    __slots__ = ()

    _ours: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if name.startswith("_") or name in cls._ours:
                continue
            if isinstance(member, FunctionType):
                setattr(cls, name, public(member))
            elif isinstance(member, classmethod | staticmethod):
                setattr(cls, name, type(member)(public(member.__func__)))

    def __dir__(self) -> Iterable[str]:
        names = set(super().__dir__()) - self._ours
        return sorted(name for name in names if name.startswith("__") or not name.startswith("_"))
