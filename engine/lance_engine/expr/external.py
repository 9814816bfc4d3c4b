"""Functions that this package does not compute itself, by whoever does: a SQL engine that is at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

#: Computes a function of this name over arrays of equal length, or scalars where arguments are constant.
#: LookupError where there is no such function, or not of such arguments.
Provider = Callable[[str, Sequence["pa.Array | pa.Scalar"]], pa.Array]

#: What the names of such functions begin with in the tree.
PREFIX: Final = "sql:"

_providers: list[Provider] = []


def provide(provider: Provider) -> None:
    """Let `provider` compute what nothing here does."""
    _providers[:] = [provider]


def is_provided() -> bool:
    """Whether somebody computes such functions."""
    return bool(_providers)


def function(name: str) -> Callable[..., pa.Array] | None:
    """What computes the function called so in the tree, if it is such a one."""
    if not name.startswith(PREFIX) or not _providers:
        return None
    return lambda *values: _providers[0](name.removeprefix(PREFIX), values)
