"""The pictures of the report, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lance_sql.display.amounts import in_bytes
from lance_sql.report.markup import as_html
from lance_sql.report.zones import ZonePicture

#: Width of the pictures, in view box units.
_WIDTH = 1000
#: The initial filter in zone pictures: the middle tenth of the values.
FILTER = (0.45, 0.55)
#: Maximum number of fragments or versions that are drawn; if there are more, the last ones.
MOST = 200


def _svg(height: float, body: str, css: str, label: str) -> str:
    stretched = ' preserveAspectRatio="none"' if css == "zones" else ""
    return (
        f'<svg class="{css}" viewBox="0 0 {_WIDTH} {height:g}"{stretched} role="img" '
        f'aria-label="{as_html(label)}">{body}</svg>'
    )


def timeline(versions: Sequence[dict[str, Any]], tags: dict[int, list[str]], current: int) -> str:
    """Versions from left to right, with row counts as steps, and a dot in the color of the operation."""
    shown = versions[-MOST:]
    top, bottom, left, right = 46.0, 150.0, 14.0, _WIDTH - 14.0
    most = max((version["rows"] or 0 for version in shown), default=0) or 1
    step = (right - left) / max(len(shown), 1)
    body = []
    every = math.ceil(len(shown) / 24)
    points = []
    for place, version in enumerate(shown):
        x = left + step * (place + 0.5)
        y = bottom - (bottom - top) * (version["rows"] or 0) / most
        points += [(x - step / 2, y), (x + step / 2, y)]
    if points:
        line = " ".join(f"L{x:.1f} {y:.1f}" for x, y in points)
        first, last = points[0][0], points[-1][0]
        body.append(f'<path class="area" d="M{first:.1f} {bottom:g} {line} L{last:.1f} {bottom:g} Z"/>')
    body.append(f'<line class="axis" x1="{left:g}" x2="{right:g}" y1="{bottom:g}" y2="{bottom:g}"/>')
    for place, version in enumerate(shown):
        x = left + step * (place + 0.5)
        y = bottom - (bottom - top) * (version["rows"] or 0) / most
        number, operation = version["version"], version["operation"] or "unknown"
        rows = "rows unknown" if version["rows"] is None else f"{version['rows']:,} rows"
        when = version["committed_at"].strftime("%Y-%m-%d %H:%M:%S")
        title = f"version {number}: {operation}, {rows}, {when} UTC"
        ring = " now" if number == current else ""
        body.append(
            f'<circle class="op op-{as_html(operation)}{ring}" cx="{x:.1f}" cy="{y:.1f}" r="6">'
            f"<title>{as_html(title)}</title></circle>"
        )
        if place % every == 0 or number == current:
            body.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 18:g}">{number}</text>')
        if number in tags:
            names = as_html(", ".join(tags[number]))
            body.append(f'<text class="tag" x="{x:.1f}" y="{max(y - 14, 16):.1f}">{names}</text>')
    return _svg(bottom + 28, "".join(body), "timeline", "rows per version")


def fragments(rows: Sequence[dict[str, Any]]) -> str:
    """A bar per fragment, with its rows as height; the deleted part has another color."""
    shown = rows[-MOST:]
    top, bottom = 8.0, 130.0
    most = max((row["physical_rows"] for row in shown), default=0) or 1
    step = _WIDTH / max(len(shown), 1)
    width = min(step * 0.86, 90.0)
    every = math.ceil(len(shown) / 30)
    body = []
    for place, row in enumerate(shown):
        x = step * (place + 0.5) - width / 2
        height = (bottom - top) * row["physical_rows"] / most
        gone = (bottom - top) * row["deleted_rows"] / most
        size = "" if row["bytes"] is None else f", {in_bytes(row['bytes'])}"
        title = (
            f"fragment {row['fragment_id']}: {row['rows']:,} rows, {row['deleted_rows']:,} deleted, "
            f"{row['files']} files{size}"
        )
        body.append(
            f"<g><title>{as_html(title)}</title>"
            f'<rect class="live" x="{x:.1f}" y="{bottom - height:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" rx="2"/>'
        )
        if gone:
            body.append(
                f'<rect class="deleted" x="{x:.1f}" y="{bottom - height:.1f}" width="{width:.1f}" '
                f'height="{max(gone, 2):.1f}" rx="2"/>'
            )
        body.append("</g>")
        if place % every == 0:
            body.append(
                f'<text class="tick" x="{x + width / 2:.1f}" y="{bottom + 18:g}">{row["fragment_id"]}</text>'
            )
    return _svg(bottom + 28, "".join(body), "fragments", "rows per fragment")


def zones(picture: ZonePicture) -> str:
    """Zones from left to right as rectangles from min to max.

    Zones that the filter may match are highlighted; a script moves the filter with the pointer.
    """
    height = 120.0
    start, end = FILTER
    band = (
        f'<rect class="band" x="0" width="{_WIDTH}" y="{height * (1 - end):.1f}" '
        f'height="{height * (end - start):.1f}"/>'
    )
    body = [band]
    for left, right, low, high in zip(picture.starts, picture.ends, picture.low, picture.high, strict=True):
        if not math.isfinite(low):
            continue
        read = " read" if low <= end and high >= start else ""
        x, width = left * _WIDTH, (right - left) * _WIDTH
        gap = min(1.0, width * 0.15)
        y, tall = height * (1 - high), max(height * (high - low), 2.0)
        body.append(
            f'<rect class="zone{read}" data-low="{low:.4f}" data-high="{high:.4f}" x="{x + gap / 2:.2f}" '
            f'width="{width - gap:.2f}" y="{min(y, height - 2):.2f}" height="{tall:.2f}"/>'
        )
    return _svg(height, "".join(body), "zones", f"zone map of {picture.column}")
