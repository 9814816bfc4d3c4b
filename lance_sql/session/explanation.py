"""What a plan reads from its Lance datasets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.base import (
    PlanNode,
    PlanPicture,
    Public,
    legible_line,
    legible_text,
    picture,
    without_secrets,
)

from lance_sql.display.amounts import counted
from lance_sql.display.plans import DUCKDB_PLAN, plan_html
from lance_sql.engines.base import ScanReport

if TYPE_CHECKING:
    from lance_engine.base import ScanMetrics


@dataclass(frozen=True, slots=True)
class Explanation(Public):
    """The plan of a statement: the engine's text, and one report per scan of a Lance dataset."""

    engine: str
    plan: str
    scans: tuple[ScanReport, ...]
    #: what was read, if the statement ran: see `lance_sql.session.metrics.scan_metrics`
    runs: tuple[dict[str, Any], ...] = ()
    #: descriptions of the searches, by the names of their tables in the plan
    searches: tuple[tuple[str, list[str]], ...] = ()
    #: the steps of the plan, for the picture
    trees: tuple[PlanNode, ...] = ()
    #: the keys that scans exchange, and after a run, how they were used
    keys: tuple[str, ...] = ()
    #: the result of the engine's EXPLAIN: two columns of strings
    rows: pa.Table | None = None
    #: what pushdowns do for the statement, apart from what scans and keys say
    pushdowns: tuple[str, ...] = ()

    def table(self) -> pa.Table:
        """The result of EXPLAIN: the rows of the engine, followed by one for each part of ours."""
        rows = self.rows
        if rows is None:
            rows = pa.table(dict(zip(DUCKDB_PLAN, (["physical_plan"], [self.plan]), strict=True)))
        names = ["lance_scan"] * len(self.scans) + ["lance_keys"] * len(self.keys)
        names += ["lance_pushdown"] * len(self.pushdowns)
        names += [name for name, _ in self.searches] + ["lance_read"] * len(self.runs)
        texts = []
        for title, details in self._parts():
            lines = [f"{name:10}{value}" if name else value for name, value in details]
            shown = lines if title.startswith("Lance search") else [title.split("  ", 1)[1], *lines]
            texts.append(without_secrets("\n".join(map(legible_line, shown))))
        told = pa.table([pa.array(names, pa.string()), pa.array(texts, pa.string())], schema=rows.schema)
        return pa.concat_tables([rows, told])

    def __str__(self) -> str:
        lines = []
        for title, details in self._parts():
            lines += [title, *(f"  {name:10}{value}" if name else f"  {value}" for name, value in details)]
        shown = [*map(legible_line, lines), f"Plan of {self.engine}", legible_text(self.plan.rstrip())]
        return without_secrets("\n".join(shown))

    def picture(self) -> PlanPicture:
        """The plan as a tree of boxes, in HTML."""
        trees = self.trees or (PlanNode(self.plan),)
        parts = [PlanNode(title, tuple(details), is_lance=True) for title, details in self._parts()]
        return picture(f"Plan of {self.engine}", trees, parts)

    def _parts(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Title and details of each scan, each search, and each scan that ran."""
        for scan in self.scans:
            yield self._scan_part(scan)
        for keys in self.keys:
            yield f"Join keys  {keys}", []
        for rule in self.pushdowns:
            yield f"Pushdown  {rule}", []
        for name, described in self.searches:
            yield f"Lance search  {name}", [("", line) for line in described]
        for run in self.runs:
            filter = "" if run["filter"] is None else f"  where {run['filter']}"
            columns = ", ".join(run["columns"]) or "(no columns)"
            yield f"Lance read  {run['table']}  {columns}{filter}", _run_details(run)

    def _scan_part(self, scan: ScanReport) -> tuple[str, list[tuple[str, str]]]:
        dataset = scan.dataset
        total = len(dataset.schema.names)
        fragments = dataset.snapshot.fragments
        size = ", ".join(
            [
                counted(dataset.count_rows(), "row"),
                counted(len(fragments), "fragment"),
                counted(sum(len(fragment.files) for fragment in fragments), "file"),
            ]
        )
        details = []
        if scan.columns is not None:
            columns = f"{', '.join(scan.columns) or '(none)'} ({len(scan.columns)} of {total})"
            details.append(("columns", columns))
        if scan.coded:
            details.append(
                ("codes", f"{', '.join(scan.coded)}: compared as dictionary codes instead of strings")
            )
        details.append(("pushed", " AND ".join(scan.pushed) or "-"))
        details.append(("residual", " AND ".join(scan.residual) or "-"))
        for decision in scan.decisions:
            place = "pushed" if decision.pushed else f"left to {self.engine}"
            details.append(("why", f"{decision.condition}: {place}, {decision.reason}"))
        for decision in scan.narrowed:
            place = "the scan drops rows first" if decision.pushed else f"left to {self.engine}"
            details.append(("why", f"{decision.condition}: {place}, {decision.reason}"))
        if scan.scanner is not None:
            details += _left_details(scan.scanner.look_ahead())
        if scan.read_ahead:
            details.append(("ahead", "loaded into memory before the statement runs"))
        return f"Lance scan  {scan.name}  version {dataset.version}, {size}", details

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return plan_html(str(self))


def _left_details(metrics: ScanMetrics) -> list[tuple[str, str]]:
    """The rows of a table that remain after indices and zone maps."""
    parts = [f"{metrics.rows_left:,} of {metrics.rows:,} rows"]
    parts.append(f"{metrics.fragments_read:,} of {counted(metrics.fragments, 'fragment')}")
    if metrics.zones:
        parts.append(f"{metrics.zones_read:,} of {counted(metrics.zones, 'zone')}")
    details = [("left", ", ".join(parts))]
    for use in metrics.indices:
        covered = f"{use.covered:,} of {use.fragments:,} fragments"
        details.append(("index", f"{use.name} ({use.kind}) for {use.filter}: {covered}"))
    return details


def _run_details(run: dict[str, Any]) -> list[tuple[str, str]]:
    """What one scan read, as text."""
    skipped = run["rows_planned"] - run["rows_left"]
    parts = ("zones", "fragments", "pages")
    read = ", ".join(f"{part} {run[f'{part}_read']:,} of {run[part]:,}" for part in parts)
    cached = f"{run['cache_bytes']:,} of these bytes, {counted(run['cache_hits'], 'range')}, on disk"
    details = [
        ("rows", f"{run['rows_out']:,} out of {run['rows_decoded']:,} decoded, of {run['rows']:,}"),
        ("pruned", f"{skipped:,} rows; read {read}"),
        ("bytes", f"{run['bytes_read']:,} in {counted(run['requests'], 'request')}"),
        *([("cached", cached)] if run["cache_hits"] else []),
        ("seconds", ", ".join(f"{phase} {seconds:.3f}" for phase, seconds in run["seconds"].items())),
    ]
    for use in run["indices"]:
        covered = f"{use['covered']} of {use['fragments']} fragments"
        details.append(("index", f"{use['name']} ({use['kind']}) for {use['filter']}: {covered}"))
    return details
