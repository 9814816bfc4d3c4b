"""The pages that a selection of rows reads, for the statistics of a scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lance_engine.metrics import Touched
from lance_engine.scan.selection import I64Array, Selection


class FragmentRows(NamedTuple):
    """Fragments with consecutive rows: their ids, and the first row of each."""

    ids: Sequence[int]
    starts: I64Array


class PageMap(NamedTuple):
    """Where the pages of some columns begin, among the rows of fragments that are read together."""

    fragments: FragmentRows
    columns: Sequence[tuple[str, Sequence[int]]]
    """Name, and the first row of every page followed by the number of rows."""

    def touched(self, selection: Selection) -> Iterator[Touched]:
        """The pages of every column that a selection reads."""
        ids, first_rows = self.fragments
        for name, page_starts in self.columns:
            starts = np.asarray(page_starts[:-1], dtype=np.int64)
            pages = _pages(starts, selection)
            if len(ids) == 1:
                yield (ids[0], name), len(starts), pages.tolist()
                continue
            # The pages of a fragment are numbered from 0.
            borders = np.append(np.searchsorted(starts, first_rows), len(starts))
            owners = np.searchsorted(borders, pages, "right") - 1
            for owner in np.unique(owners).tolist():
                own = pages[owners == owner] - borders[owner]
                yield (ids[owner], name), int(borders[owner + 1] - borders[owner]), own.tolist()


def _pages(starts: I64Array, selection: Selection) -> npt.NDArray[np.int64]:
    if selection.prefers_rows:
        return np.unique(np.searchsorted(starts, selection.offsets, "right") - 1)
    first = np.searchsorted(starts, selection.ranges[:, 0], "right") - 1
    last = np.searchsorted(starts, selection.ranges[:, 1], "left")
    if len(first) == 1:
        return np.arange(first[0], last[0])
    return np.unique(np.concatenate([np.arange(*pages) for pages in zip(first, last, strict=True)]))
