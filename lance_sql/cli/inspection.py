"""``lance-sql inspect``: the structure of a dataset, as a tree, JSON or an HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from lance_engine.base import legible_line, without_secrets

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import dataset_options, json_option, open_dataset

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

#: Parts of the report, which are methods of `Dataset.inspect`.
_PARTS = ("versions", "fragments", "files", "columns", "pages", "indices", "refs")
#: Keys that `statistics` adds to columns.
_ADDED = ("rows", "null_count", "minimum", "maximum", "zones", "plain_bytes", "ratio")
#: Maximum number of pages per column and fragment, and of fragments, that the tree shows by default.
_SHOWN = 8


@click.command("inspect")
@dataset_options
@json_option
@click.option("--all", "everything", is_flag=True, help="Show all fragments and pages.")
@click.option("--html", metavar="FILE", help="Write an HTML report with charts.")
@reports_errors
def inspect_command(path: str, as_json: bool, everything: bool, html: str | None, **which: Any) -> None:
    """Show the structure of a dataset: columns, fragments, files and pages.

    \b
    lance-sql inspect sales.lance
    lance-sql inspect sales.lance --at 3 --json
    lance-sql inspect sales.lance --html report.html

    Min, max and null counts come from zone maps, which include deleted rows. The ratio is the size in
    memory divided by the size on disk.
    """
    dataset = open_dataset(path, **which)
    if html is not None:
        from lance_sql.report.page import write_report

        write_report(dataset, html)
        click.echo(f"wrote {html}", err=True)
        return
    report = _report(dataset)
    if as_json:
        from lance_sql.display.output import print_json

        print_json(report)
    else:
        click.echo("\n".join(_tree(report, None if everything else _SHOWN)))


def _report(dataset: DatasetVersion) -> dict[str, Any]:
    """All parts as plain values; see `_PARTS`."""
    inspect = dataset.inspect
    report: dict[str, Any] = {
        "uri": dataset.uri,
        "version": dataset.version,
        "branch": dataset.branch,
        "rows": dataset.count_rows(),
        "storage_version": dataset.snapshot.manifest.storage_version,
    }
    for part in _PARTS:
        report[part] = getattr(inspect, part)().to_pylist()
    known = {row["column"]: row for row in inspect.statistics().to_pylist()}
    for column in report["columns"]:
        column.update({key: known[column["column"]][key] for key in _ADDED})
    return report


def _legible(value: Any) -> Any:
    """The report without terminal control characters."""
    if isinstance(value, dict):
        return {key: _legible(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_legible, value))
    return legible_line(without_secrets(value)) if isinstance(value, str) else value


def _tree(report: dict[str, Any], limit: int | None) -> list[str]:
    from lance_sql.display.amounts import counted, in_bytes
    from lance_sql.display.tables import aligned

    report = _legible(report)
    fragments = report["fragments"]
    size = sum(fragment["bytes"] or 0 for fragment in fragments)
    branch = f" of branch {report['branch']}" if report["branch"] else ""
    lines = [
        click.style(report["uri"], bold=True),
        f"version {report['version']}{branch}, {counted(report['rows'], 'row')} in "
        f"{counted(len(fragments), 'fragment')}, {in_bytes(size)}, "
        f"format {report['storage_version'] or '?'}, {counted(len(report['versions']), 'version')}",
        "",
        click.style("columns", bold=True),
    ]
    table = [["", "type", "bytes", "ratio", "nulls", "minimum", "maximum", "pages", "encoding"]]
    table += [
        [
            column["column"],
            column["type"] + ("" if column["nullable"] else " not null"),
            in_bytes(column["bytes"]),
            f"{column['ratio']:.1f}x" if column["ratio"] else "",
            "" if column["null_count"] is None else f"{column['null_count']:,}",
            _short(column["minimum"]),
            _short(column["maximum"]),
            f"{column['pages']:,}",
            ", ".join(column["encodings"]),
        ]
        for column in report["columns"]
    ]
    lines += [f"  {line}" for line in aligned(table, right={2, 3, 4, 7})]
    if report["indices"]:
        lines += ["", click.style("indices", bold=True)]
        lines += [
            f"  {index['name']}  {index['kind']} on {', '.join(index['columns'])}: covers "
            f"{index['fragments']} of {index['fragments'] + index['uncovered_fragments']} fragments"
            for index in report["indices"]
        ]
    if report["refs"]:
        lines += ["", click.style("tags and branches", bold=True)]
        lines += [f"  {ref['kind']} {ref['name']}: version {ref['version']}" for ref in report["refs"]]
    lines += ["", click.style("fragments", bold=True)]
    for fragment in fragments[:limit]:
        lines += _fragment(report, fragment, limit)
    if limit is not None and len(fragments) > limit:
        lines.append(f"  ... {len(fragments) - limit:,} more (--all shows them)")
    return lines


def _fragment(report: dict[str, Any], fragment: dict[str, Any], limit: int | None) -> list[str]:
    from lance_sql.display.amounts import counted, in_bytes

    number = fragment["fragment_id"]
    deleted = f", {fragment['deleted_rows']:,} deleted" if fragment["deleted_rows"] else ""
    size = "" if fragment["bytes"] is None else f", {in_bytes(fragment['bytes'])}"
    lines = [f"  {number}: {counted(fragment['rows'], 'row')}{deleted}{size}"]
    for file in report["files"]:
        if file["fragment_id"] != number:
            continue
        lines.append(f"    {file['path']}  (format {file['version']})")
        pages: dict[str, list[dict[str, Any]]] = {}
        for page in report["pages"]:
            if page["fragment_id"] == number and file["path"].endswith(page["path"].rpartition("/")[2]):
                pages.setdefault(page["column"], []).append(page)
        for column, of_column in pages.items():
            lines.append(f"      {column}")
            for page in of_column[:limit]:
                last = page["first_row"] + page["rows"] - 1
                lines.append(
                    f"        page {page['page']}: rows {page['first_row']:,} to {last:,}, "
                    f"{in_bytes(page['bytes'])}, {page['encoding']}"
                )
            if limit is not None and len(of_column) > limit:
                lines.append(f"        ... {len(of_column) - limit:,} more pages")
    return lines


def _short(text: str | None) -> str:
    return "" if text is None else text if len(text) <= 24 else text[:23] + "…"
