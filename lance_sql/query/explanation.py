"""What a plan asks of the Lance datasets in it."""

from __future__ import annotations

import html
from dataclasses import dataclass

from lance_sql.engines.base import ScanReport
from lance_sql.query.display import counted


@dataclass(frozen=True, slots=True)
class Explanation:
    """The plan of a statement: the engine's text, and one report per scan of a Lance dataset."""

    engine: str
    plan: str
    scans: tuple[ScanReport, ...]

    def __str__(self) -> str:
        lines = []
        for scan in self.scans:
            dataset = scan.dataset
            total = len(dataset.schema.names)
            fragments = counted(len(dataset.snapshot.fragments), "fragment")
            size = f"{counted(dataset.count_rows(), 'row')}, {fragments}"
            lines.append(f"Lance scan  {scan.name}  version {dataset.version}, {size}")
            if scan.columns is not None:
                lines.append(
                    f"  columns   {', '.join(scan.columns) or '(none)'} ({len(scan.columns)} of {total})"
                )
            lines.append(f"  pushed    {' AND '.join(scan.pushed) or '-'}")
            lines.append(f"  residual  {' AND '.join(scan.residual) or '-'}")
        return "\n".join([*lines, f"Plan of {self.engine}", self.plan.rstrip()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
