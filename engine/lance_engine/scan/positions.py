"""Converts positions of rows that are not deleted to addresses."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lance_engine.errors import InvalidArgumentError, PositionOutOfRangeError
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot

_REMEDY = {
    "row ids": "Pass values of the column _rowid; take_positions() reads rows by position",
    "positions": "Pass whole numbers from 0; take() reads rows by row id, to_table() reads columns by name",
}

#: for each fragment, the number of live rows in it and in all earlier ones
_ends: WeakIdentityDict[Snapshot, npt.NDArray[np.uint64]] = WeakIdentityDict()


def row_numbers(values: npt.ArrayLike, what: str) -> npt.NDArray[np.uint64]:
    """Row ids or positions (`what`) as unsigned numbers; InvalidArgumentError for invalid values."""
    try:
        given = np.asarray(values)
    except ValueError:  # such as lists of different lengths
        raise _not_numbers(values, what) from None
    if given.ndim != 1:
        raise InvalidArgumentError(
            f"{what.capitalize()} must be a list of whole numbers, not {_shown(values)}", remedy=_REMEDY[what]
        )
    if len(given) == 0:
        return np.empty(0, dtype=np.uint64)
    if given.dtype.kind == "u":
        return given.astype(np.uint64, copy=False)
    if given.dtype.kind == "i" and given.min() >= 0:
        return given.astype(np.uint64, copy=False)
    if given.dtype.kind in "fO" and not isinstance(values, np.ndarray):
        # Python numbers on both sides of 2 ** 63 have no common type of whole numbers in numpy.
        numbers: Any = values
        try:
            return np.array([operator.index(number) for number in numbers], dtype=np.uint64)
        except (TypeError, OverflowError):
            pass
    raise _not_numbers(values, what)


def _not_numbers(values: npt.ArrayLike, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{what.capitalize()} must be whole numbers that are not negative, not {_shown(values)}",
        remedy=_REMEDY[what],
    )


def _shown(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 60 else text[:57] + "..."


def addresses_at(snapshot: Snapshot, positions: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The addresses of the rows at `positions`, counted over live rows in the order of scans."""
    if len(positions) == 0:
        return positions
    ends = _ends_of(snapshot)
    rows = int(ends[-1]) if len(ends) else 0
    if int(positions.max()) >= rows:
        raise PositionOutOfRangeError(
            f"Position {int(positions.max())} is out of range: the dataset has {rows} rows",
            path=snapshot.uri,
            version=snapshot.version,
        )
    places = np.searchsorted(ends, positions, side="right")
    addresses = np.empty(len(positions), dtype=np.uint64)
    fragments = snapshot.fragments
    touched = np.unique(places).tolist()
    snapshot.fetch_deletions(fragments[place] for place in touched)
    for place in touched:
        here = places == place if len(touched) > 1 else slice(None)
        begin = ends[place - 1] if place else np.uint64(0)
        offsets = positions[here] - begin
        deleted = snapshot.deleted_rows(fragments[place])
        if deleted is not None:
            # The number of live rows before each deleted one: each deleted row shifts an offset by one.
            before = deleted.astype(np.int64) - np.arange(len(deleted))
            offsets += np.searchsorted(before, offsets.astype(np.int64), side="right").astype(np.uint64)
        addresses[here] = (np.uint64(fragments[place].id) << np.uint64(32)) | offsets
    return addresses


def _ends_of(snapshot: Snapshot) -> npt.NDArray[np.uint64]:
    ends = _ends.get(snapshot)
    if ends is None:
        fragments = snapshot.fragments
        snapshot.fetch_deletions(fragment for fragment in fragments if fragment.num_deleted_rows is None)
        counts = np.fromiter(map(snapshot.live_rows, fragments), dtype=np.uint64, count=len(fragments))
        ends = _ends.setdefault(snapshot, np.cumsum(counts, dtype=np.uint64))
    return ends
