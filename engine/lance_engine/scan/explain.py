"""The description of a scan: what it reads and, after a run, its metrics."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from lance_engine.metrics import ScanMetrics
from lance_engine.plan_picture import PlanNode, PlanPicture, picture

if TYPE_CHECKING:
    from lance_engine.scan.filter import FilterSteps
    from lance_engine.scan.scanner import Scanner
    from lance_engine.table.snapshot import Snapshot


#: Separator between the counts of a line.
_COUNTS = re.compile(r", (?=[a-z ]+: )")


class ScanText(str):
    """Text of several lines that prompts and notebooks show as text, not as a quoted string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return (
            '<pre style="font-family: ui-monospace, Menlo, Consolas, monospace; white-space: pre">'
            f"{html.escape(self)}</pre>"
        )

    def picture(self) -> PlanPicture:
        """The same as a box, with a bar for what is read of a whole."""
        title, *lines = self.splitlines()
        details = []
        for line in lines:
            name, _, value = line.strip().partition(": ")
            first, *others = _COUNTS.split(value) if value[:1].isdecimal() else [value]
            details += [(name, first), *(other.partition(": ")[::2] for other in others)]
        return picture("Scan", [PlanNode(title, tuple(details), is_lance=True)])


def explain(
    scanner: Scanner, snapshot: Snapshot, steps: FilterSteps | None, metrics: ScanMetrics, *, analyze: bool
) -> ScanText:
    """The plan that `metrics` counted; with `analyze`, also the cost of running it."""
    lines = [f"LanceScan {snapshot.uri} version {snapshot.version}"]
    names = scanner.columns
    lines.append(f"  columns: {', '.join(names) or '(none)'}")
    if scanner.filter is not None:
        lines.append(f"  filter: {scanner.filter}")
        lines += _filter_lines(scanner, steps)
    if scanner.limit is not None or scanner.offset:
        lines.append(f"  limit: {scanner.limit}, offset: {scanner.offset}")
    for use in metrics.indices:
        lines.append(
            f"  index {use.name} ({use.kind} on {', '.join(use.columns)}): {use.filter}, "
            f"covers {use.covered:,} of {use.fragments:,} fragments"
        )
    if metrics.zones:
        lines.append(
            f"  zones: {metrics.zones_read:,} of {metrics.zones:,}, "
            f"rows that match without a test: {metrics.rows_untested:,}"
        )
    lines.append(
        f"  fragments: {metrics.fragments_read:,} of {metrics.fragments:,}, "
        f"physical rows: {metrics.rows_left:,} of {metrics.rows:,}"
    )
    if analyze:
        lines.append(
            f"  pages: {metrics.pages_read:,} of {metrics.pages:,}, bytes read: {metrics.bytes_read:,}"
            f", requests: {metrics.requests:,}"
            + (f", of these over-read: {metrics.bytes_over_read:,}" if metrics.requests else "")
        )
        if metrics.cache_hits:
            lines.append(f"  disk cache: {metrics.cache_hits:,} ranges, {metrics.cache_bytes:,} bytes")
        lines.append(
            f"  rows decoded: {metrics.rows_decoded:,}, rows out: {metrics.rows_out:,}"
            f", batches: {metrics.batches:,}"
        )
        times = [f"{phase} {1000 * spent:.2f} ms" for phase, spent in metrics.seconds.items()]
        lines.append(f"  time: {', '.join(times)}")
    return ScanText("\n".join(lines))


def _filter_lines(scanner: Scanner, steps: FilterSteps | None) -> list[str]:
    if steps is None:
        return ["  looked up: all of the filter"]
    tested = [str(step.node) for step in steps.ordered()]
    late = [name for name in scanner.columns if name not in steps.names]
    return [
        f"  tested: {', then '.join(tested)}",
        f"  read first: {', '.join(steps.names) or '(none)'}",
        f"  read for matching rows: {', '.join(late) or '(none)'}",
    ]
