"""Search options besides the query: which rows and columns, and how thorough the search is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lance_engine.errors import InvalidSearchError
from lance_engine.scan.paths import arrow_field

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from lance_engine.expr.tree import Node
    from lance_engine.table.snapshot import Snapshot


# No dataset has as many rows, partitions or candidates: larger numbers are equivalent.
_MOST: Final = 1 << 40


def positive(name: str, value: Any, column: str | None = None) -> int:
    """An argument that counts rows or partitions; InvalidSearchError unless it is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidSearchError(f"{name} must be a positive integer, not {value!r}", column=column)
    return min(int(value), _MOST)


class AskedRows(NamedTuple):
    """The allowed rows, and the columns of the result: see `Dataset.nearest`."""

    filter: str | pc.Expression | Node | None = None
    columns: Sequence[str] | None = None
    with_row_id: bool = False

    def check(self, snapshot: Snapshot, computed: Collection[str]) -> None:
        """InvalidSearchError if the columns are not a list of names; ColumnNotFoundError for an unknown one.

        The search adds those in `computed`.
        """
        if self.columns is None:
            return
        if isinstance(self.columns, str):
            raise InvalidSearchError(
                f"columns must be a list of names, not {self.columns!r}",
                remedy=f"Pass columns=[{self.columns!r}]",
            )
        if not isinstance(self.columns, Sequence) or not all(isinstance(name, str) for name in self.columns):
            raise InvalidSearchError(f"columns must be a list of names, not {self.columns!r}")
        for name in self.columns:
            if name not in computed:
                arrow_field(snapshot.schema, name)


class SearchOptions(NamedTuple):
    """The options of `Dataset.nearest` for indices."""

    use_index: bool = True
    fast_search: bool = False
    nprobes: int | None = None
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    refine_factor: int | None = None
    ef: int | None = None
    estimates: bool = False

    def checked(self, k: int) -> SearchOptions:
        """The options as numbers for the kernels; InvalidSearchError if one is invalid."""
        for name in ("use_index", "fast_search", "estimates"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise InvalidSearchError(f"{name} must be True or False, not {value!r}")
        names = ("nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "ef")
        given = {name: getattr(self, name) for name in names}
        checked: dict[str, Any] = {
            name: positive(name, value) for name, value in given.items() if value is not None
        }
        return self._replace(**checked)._checked_together(k)

    def _checked_together(self, k: int) -> SearchOptions:
        if self.estimates and self.refine_factor:
            raise InvalidSearchError(
                "refine_factor asks for exact distances and estimates for estimated ones",
                remedy="Pass one of them",
            )
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
        return self
