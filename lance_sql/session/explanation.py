"""What a plan asks of the Lance datasets in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_engine.legible import legible, legible_line, without_secrets

from lance_sql.display.amounts import counted
from lance_sql.display.plans import plan_html
from lance_sql.engines.base import ScanReport


@dataclass(frozen=True, slots=True)
class Explanation:
    """The plan of a statement: the engine's text, and one report per scan of a Lance dataset."""

    engine: str
    plan: str
    scans: tuple[ScanReport, ...]
    #: what was read, if the statement ran: see `lance_sql.session.metrics.scan_metrics`
    runs: tuple[dict[str, Any], ...] = ()
    #: what each search will do, by the name of its table in the plan
    searches: tuple[tuple[str, list[str]], ...] = ()

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
            for decision in scan.decisions:
                place = "pushed" if decision.pushed else f"left to {self.engine}"
                lines.append(f"  why       {decision.condition}: {place}, {decision.reason}")
            if scan.read_ahead:
                lines.append("  ahead     loaded into memory before the statement runs")
        for name, described in self.searches:
            lines += [f"Lance search  {name}", *(f"  {line}" for line in described)]
        for run in self.runs:
            filter = "" if run["filter"] is None else f"  where {run['filter']}"
            lines.append(f"Lance read  {run['table']}  {', '.join(run['columns']) or '(no columns)'}{filter}")
            lines += [f"  {line}" for line in _run_lines(run)]
        shown = [*map(legible_line, lines), f"Plan of {self.engine}", legible(self.plan.rstrip())]
        return without_secrets("\n".join(shown))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return plan_html(str(self))


def _run_lines(run: dict[str, Any]) -> list[str]:
    """What one scan read, in words."""
    skipped = run["rows_planned"] - run["rows_left"]
    parts = ("zones", "fragments", "pages")
    read = ", ".join(f"{part} {run[f'{part}_read']:,} of {run[part]:,}" for part in parts)
    lines = [
        f"rows      {run['rows_out']:,} out of {run['rows_decoded']:,} decoded, of {run['rows']:,}",
        f"pruned    {skipped:,} rows; read {read}",
        f"bytes     {run['bytes_read']:,} in {counted(run['requests'], 'request')}",
        f"cached    {run['cache_bytes']:,} of these bytes, {counted(run['cache_hits'], 'range')}, on disk",
        "seconds   " + ", ".join(f"{phase} {seconds:.3f}" for phase, seconds in run["seconds"].items()),
    ]
    if not run["cache_hits"]:
        del lines[3]
    for use in run["indices"]:
        covered = f"{use['covered']} of {use['fragments']} fragments"
        lines.append(f"index     {use['name']} ({use['kind']}) for {use['filter']}: {covered}")
    return lines
