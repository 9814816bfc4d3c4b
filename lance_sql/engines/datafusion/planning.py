"""Records the scans that DataFusion plans."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from lance_sql.engines.datafusion.table import DataFusionTable


class PlannedScan(NamedTuple):
    """A scan of a table in a plan."""

    columns: tuple[str, ...]
    filter: pc.Expression | None


class Planning:
    """Records the scans in the plans of a session, for the thread that requests it."""

    def __init__(self) -> None:
        self._place = threading.local()

    @contextmanager
    def noted(self) -> Iterator[dict[DataFusionTable, list[PlannedScan]]]:
        """The scans planned in this block, by table."""
        scans: dict[DataFusionTable, list[PlannedScan]] = {}
        self._place.scans = scans
        try:
            yield scans
        finally:
            self._place.scans = None

    def scanned(self, table: DataFusionTable, scan: PlannedScan) -> None:
        """Record a planned scan of `table`."""
        scans = getattr(self._place, "scans", None)
        if scans is not None:
            scans.setdefault(table, []).append(scan)
