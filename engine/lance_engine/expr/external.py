"""Functions that an available SQL engine evaluates instead of this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

#: Computes a function of this name over arrays of equal length, or scalars where arguments are constant.
#: LookupError if no function has this name and these arguments.
Provider = Callable[[str, Sequence["pa.Array | pa.Scalar"]], pa.Array]

#: The prefix of the names of such functions in the tree.
PREFIX: Final = "sql:"

_providers: list[Provider] = []


def provide(provider: Provider) -> None:
    """Let `provider` compute functions that are not implemented here."""
    _providers[:] = [provider]


def is_provided() -> bool:
    """Whether an engine for such functions is available."""
    return bool(_providers)


def compute(name: str, values: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    """The values of the function with this name in the tree; LookupError if no engine has it."""
    if not _providers:
        raise LookupError(name)
    return _providers[0](name.removeprefix(PREFIX), values)
