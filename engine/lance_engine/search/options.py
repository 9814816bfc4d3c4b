"""Options of a search besides its query: which rows, what of them, and how thoroughly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lance_engine.errors import InvalidSearchError

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from lance_engine.expr.tree import Node


class AskedRows(NamedTuple):
    """The rows that may be found, and the columns of the answer: see `Dataset.nearest`."""

    filter: str | pc.Expression | Node | None = None
    columns: Sequence[str] | None = None
    with_row_id: bool = False


class SearchOptions(NamedTuple):
    """The options of `Dataset.nearest` that are about indices."""

    use_index: bool = True
    fast_search: bool = False
    nprobes: int | None = None
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    refine_factor: int | None = None
    ef: int | None = None

    def check(self, k: int) -> None:
        """InvalidSearchError if an option is invalid."""
        for name in ("nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "ef"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidSearchError(f"{name} must be a positive integer, not {value!r}")
        most = self.nprobes or self.maximum_nprobes
        if self.minimum_nprobes and most and self.minimum_nprobes > most:
            raise InvalidSearchError(
                f"minimum_nprobes ({self.minimum_nprobes}) must not exceed the maximum number of "
                f"partitions to search ({most})"
            )
        if self.ef is not None and self.ef < k * (self.refine_factor or 1):
            raise InvalidSearchError(
                f"ef ({self.ef}) must be at least the number of rows ({k * (self.refine_factor or 1)})"
            )
