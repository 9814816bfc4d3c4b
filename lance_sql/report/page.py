"""The page: tables and pictures in sections, styles and a short script, all in one file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from lance_engine.base import without_secrets
from lance_engine.dataset import DatasetVersion
from lance_engine.io import LocalErrors

from lance_sql.display.amounts import counted, in_bytes
from lance_sql.report import drawings
from lance_sql.report.layout import page_strips
from lance_sql.report.markup import as_html
from lance_sql.report.part import MOST_INDICES, shown_part
from lance_sql.report.zones import ZonePicture, zone_pictures

#: Number of colors for encodings; if there are more encodings, they share colors.
_COLOURS = 8


def write_report(dataset: DatasetVersion, path: str | os.PathLike[str]) -> None:
    """Write the report of this version to the file `path`."""
    text = report_page(dataset)
    with LocalErrors(os.fspath(path), writing=True):
        Path(path).write_text(text, encoding="utf-8")


def report_page(dataset: DatasetVersion) -> str:
    """The report of this version as a self-contained HTML page that makes no network requests.

    Reads metadata only: that of a part of the columns and fragments if there are very many.
    """
    part, left_out = shown_part(dataset)
    inspect = part.inspect
    fragments = inspect.fragments().to_pylist()
    columns = _columns(part)
    versions = dataset.inspect.versions(drawings.MOST)
    pages = inspect.pages().to_pylist()
    colours = _colours(pages)
    sections = [
        _section("Columns", _columns_table(columns), _columns_note(columns)),
        _section("Bytes by encoding", _encodings(pages)),
        _section(
            "Pages",
            page_strips(pages, fragments, lambda encoding: f"c{colours[_kind(encoding)]}"),
            "Rows run from left to right. Each box is a page, as high as its bytes, in the colour of its "
            "encoding; dark edges are fragments. Hover over a page for details.",
        ),
        _section(
            "Versions",
            drawings.timeline(versions.to_pylist(), _tags(dataset), dataset.version)
            + _legend(versions["operation"].to_pylist()),
            "Rows per version. Hover over a dot for details.",
        ),
        _section(
            "Fragments",
            drawings.fragments(fragments),
            "Rows per fragment. Deleted rows, which scans still read, are red.",
        ),
        _section("Zone maps", _zone_section(zone_pictures(part))),
        _section("Indices", _indices(dataset.inspect.indices().to_pylist())),
    ]
    name = os.path.basename(dataset.uri.rstrip("/"))
    assets = files("lance_sql.report")
    style = (assets / "style.css").read_text(encoding="utf-8")
    script = (assets / "script.js").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{as_html(name)}</title><style>{style}</style></head><body><main>"
        f"<header><h1>{as_html(name)}</h1><p>{as_html(without_secrets(dataset.uri))}</p></header>"
        f"{_note(left_out)}{_cards(dataset, fragments)}{''.join(sections)}"
        f"</main><script>{script}</script></body></html>\n"
    )


def _section(title: str, body: str, note: str = "") -> str:
    return f"<section><h2>{as_html(title)}</h2>{_note(note)}{body}</section>"


def _note(text: str) -> str:
    return f'<p class="note">{as_html(text)}</p>' if text else ""


def _cards(dataset: DatasetVersion, fragments: Sequence[dict[str, Any]]) -> str:
    total, rows = len(dataset.snapshot.fragments), dataset.count_rows()
    deleted = dataset.snapshot.physical_rows - rows
    size = in_bytes(sum(fragment["bytes"] or 0 for fragment in fragments))
    branch = f" of {dataset.branch}" if dataset.branch else ""
    cards = [
        ("version", f"{dataset.version}{branch}"),
        ("rows", f"{rows:,}"),
        ("deleted rows", f"{deleted:,}"),
        ("columns", f"{len(dataset.schema.names):,}"),
        ("fragments", f"{total:,}"),
        ("on storage", size if len(fragments) == total else f"over {size}"),
        ("file format", dataset.snapshot.manifest.storage_version or "unknown"),
    ]
    items = "".join(
        f"<div><b>{as_html(value)}</b><span>{as_html(name)}</span></div>" for name, value in cards
    )
    return f'<div class="cards">{items}</div>'


def _columns(dataset: DatasetVersion) -> list[dict[str, Any]]:
    known = {row["column"]: row for row in dataset.inspect.statistics().to_pylist()}
    return [row | known[row["column"]] for row in dataset.inspect.columns().to_pylist()]


def _columns_note(columns: Sequence[dict[str, Any]]) -> str:
    size = sum(column["bytes"] for column in columns)
    return (
        f"{counted(len(columns), 'stored column')}, {in_bytes(size)}. Min, max and nulls come from the "
        f"zone maps. The ratio compares the size in memory with the size on disk."
    )


def _columns_table(columns: Sequence[dict[str, Any]]) -> str:
    most = max((column["bytes"] for column in columns), default=0) or 1
    rows = []
    for column in columns:
        nulls = ""
        if column["null_count"] is not None and column["rows"]:
            nulls = f"{column['null_count'] / column['rows']:.1%}" if column["null_count"] else "0"
        bar = f'<i class="bar" style="width:{100 * column["bytes"] / most:.1f}%"></i>'
        # Bounds of binary values are left out: as hexadecimal digits, they are not readable.
        is_binary = "binary" in column["type"]
        bounds = (None, None) if is_binary else (column["minimum"], column["maximum"])
        ratio = f"{column['ratio']:.1f}x" if column["ratio"] else ""
        encodings = ", ".join(dict.fromkeys(map(_kind, column["encodings"])))
        rows.append(
            f"<tr><th>{as_html(column['column'])}</th>"
            f'<td data-name="type"><code>{as_html(column["type"])}</code></td>'
            f'<td class="number" data-name="nulls">{nulls}</td>'
            f'<td data-name="min">{_bound(bounds[0])}</td>'
            f'<td data-name="max">{_bound(bounds[1])}</td>'
            f'<td class="number" data-name="bytes">{in_bytes(column["bytes"])}</td>'
            f'<td class="bars">{bar}</td>'
            f'<td class="number" data-name="ratio">{ratio}</td>'
            '<td class="encoding" data-name="encodings">'
            f"{as_html(encodings).replace('(', '(<wbr>')}</td></tr>"
        )
    heads = ("column", "type", "nulls", "min", "max", "bytes", "", "ratio", "encodings")
    numbers = ("nulls", "bytes", "ratio")
    head = "".join(
        f'<th class="number">{name}</th>' if name in numbers else f"<th>{name}</th>" for name in heads
    )
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="wide"><table class="columns">{body}</table></div>'


def _kind(encoding: str) -> str:
    """The encoding without the sizes of dictionaries, which differ between pages."""
    return re.sub(r"\[\d+\]", "", encoding)


def _bound(value: str | None) -> str:
    if value is None:
        return ""
    shown = value if len(value) <= 22 else value[:21] + "…"
    return f'<span title="{as_html(value)}">{as_html(shown)}</span>'


def _bytes_by_kind(pages: Sequence[dict[str, Any]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for page in pages:
        kind = _kind(page["encoding"])
        totals[kind] = totals.get(kind, 0) + page["bytes"]
    return totals


def _colours(pages: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The color number for each kind of encoding, starting with the one with the most bytes."""
    totals = _bytes_by_kind(pages)
    ordered = sorted(totals, key=lambda kind: -totals[kind])
    return {kind: number % _COLOURS for number, kind in enumerate(ordered)}


def _encodings(pages: Sequence[dict[str, Any]]) -> str:
    """A bar for all bytes, divided by encoding, and one line per column, divided in the same way."""
    totals = _bytes_by_kind(pages)
    by_column: dict[str, dict[str, int]] = {}
    for page in pages:
        kind = _kind(page["encoding"])
        column = by_column.setdefault(page["column"], {})
        column[kind] = column.get(kind, 0) + page["bytes"]
    colour = _colours(pages)
    ordered = list(colour)
    total = sum(totals.values()) or 1
    most = max((sum(parts.values()) for parts in by_column.values()), default=0) or 1

    def cut(parts: dict[str, int], whole: int) -> str:
        pieces = "".join(
            f'<i class="c{colour[kind]}" style="width:{100 * parts[kind] / whole:.3f}%" '
            f'title="{as_html(kind)}: {in_bytes(parts[kind])}"></i>'
            for kind in ordered
            if kind in parts
        )
        return f'<div class="cut">{pieces}</div>'

    legend = "".join(
        f'<li><i class="c{colour[kind]}"></i><code>{as_html(kind)}</code> {in_bytes(totals[kind])}, '
        f"{totals[kind] / total:.0%}</li>"
        for kind in ordered
    )
    lines = "".join(
        f"<tr><th>{as_html(column)}</th><td>{cut(parts, most)}</td>"
        f'<td class="number">{in_bytes(sum(parts.values()))}</td></tr>'
        for column, parts in sorted(by_column.items(), key=lambda item: -sum(item[1].values()))
    )
    return (
        f'{cut(totals, total)}<ul class="legend">{legend}</ul>'
        f'<table class="lines"><tbody>{lines}</tbody></table>'
    )


def _tags(dataset: DatasetVersion) -> dict[int, list[str]]:
    tags: dict[int, list[str]] = {}
    for tag in dataset.tags.list():
        if tag.branch == dataset.branch:
            tags.setdefault(tag.version, []).append(tag.name)
    return tags


def _legend(operations: Iterable[str | None]) -> str:
    names = dict.fromkeys(operation or "unknown" for operation in operations)
    items = "".join(f'<li><i class="op op-{as_html(name)}"></i>{as_html(name)}</li>' for name in names)
    return f'<ul class="legend">{items}</ul>'


def _zone_section(pictures: Sequence[ZonePicture]) -> str:
    if not pictures:
        return '<p class="note">No column has a zone map.</p>'
    note = (
        "Rows run from left to right. Each box is a zone, drawn from its min to its max value. "
        "A filter on the shaded range reads the coloured zones and skips the rest. Move the mouse over a "
        "chart to move the filter."
    )
    blocks = []
    for picture in pictures:
        share = picture.read_share(*drawings.FILTER)
        zones = counted(picture.zones, "zone")
        grouped = f", grouped by {picture.grouped}" if picture.grouped > 1 else ""
        blocks.append(
            f'<figure data-from="{drawings.FILTER[0]}" data-to="{drawings.FILTER[1]}"><figcaption>'
            f"<b>{as_html(picture.column)}</b><span>{zones}{grouped}</span>"
            f'<span class="skipped">skips {1 - share:.0%}</span></figcaption><div class="plot">'
            f'<div class="bounds"><span>{_bound(picture.maximum)}</span>'
            f"<span>{_bound(picture.minimum)}</span></div>"
            f"{drawings.zones(picture)}</div></figure>"
        )
    return f'<p class="note">{as_html(note)}</p><div class="figures">{"".join(blocks)}</div>'


def _indices(segments: Sequence[dict[str, Any]]) -> str:
    if not segments:
        return '<p class="note">No indices.</p>'
    named: dict[str, list[dict[str, Any]]] = {}
    for segment in segments:
        named.setdefault(segment["name"], []).append(segment)
    rows = []
    for name, parts in islice(named.items(), MOST_INDICES):
        total = parts[0]["fragments"] + parts[0]["uncovered_fragments"]
        covered = min(sum(part["fragments"] for part in parts), total)
        share = 100 * covered / total if total else 100.0
        size = in_bytes(sum(part["bytes"] or 0 for part in parts))
        rows.append(
            f"<tr><th>{as_html(name)}</th><td>{as_html(parts[0]['kind'])}</td>"
            f"<td>{as_html(', '.join(parts[0]['columns']))}</td>"
            f'<td class="bars"><i class="bar" style="width:{share:.1f}%"></i></td>'
            f'<td class="number">{covered} of {counted(total, "fragment")}</td>'
            f'<td class="number">{size}</td></tr>'
        )
    heads = ("index", "kind", "columns", "coverage", "", "bytes")
    head = "".join(f"<th>{name}</th>" for name in heads)
    more = f"The first {MOST_INDICES} of {len(named):,} indices." if len(named) > MOST_INDICES else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'{_note(more)}<div class="wide">{table}</div>'
