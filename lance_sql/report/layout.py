"""The pages of every column: their row ranges, in the color of their encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lance_sql.display.amounts import in_bytes
from lance_sql.report.markup import as_html

#: Maximum number of pages per column that are drawn; if there are more, the first ones.
_MOST = 400


def page_strips(
    pages: Sequence[dict[str, Any]],
    fragments: Sequence[dict[str, Any]],
    colour_of: Callable[[str], str],
) -> str:
    """One strip per column: rows from left to right, a box per page, a line where a fragment begins."""
    starts, total = {}, 0
    for fragment in fragments:
        starts[fragment["fragment_id"]] = total
        total += fragment["physical_rows"]
    if not total:
        return '<p class="note">No rows.</p>'
    columns: dict[str, list[dict[str, Any]]] = {}
    for page in pages:
        columns.setdefault(page["column"], []).append(page)
    lines = "".join(
        f"<tr><th>{as_html(column)}</th>"
        f'<td><div class="strip">{_boxes(of_column, starts, total, colour_of)}</div></td>'
        f'<td class="number">{len(of_column):,}</td></tr>'
        for column, of_column in columns.items()
    )
    return (
        '<table class="lines"><thead><tr><th>column</th><th></th><th class="number">pages</th></tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def _boxes(
    pages: Sequence[dict[str, Any]], starts: dict[int, int], total: int, colour_of: Callable[[str], str]
) -> str:
    most = max(page["bytes"] for page in pages) or 1
    boxes = []
    for page in pages[:_MOST]:
        first = starts[page["fragment_id"]] + page["first_row"]
        title = (
            f"fragment {page['fragment_id']}, page {page['page']}: {page['rows']:,} rows from "
            f"{page['first_row']:,}, {in_bytes(page['bytes'])}, {page['encoding']}"
        )
        edge = " begins" if page["first_row"] == 0 else ""
        boxes.append(
            f'<i class="{colour_of(page["encoding"])}{edge}" title="{as_html(title)}" '
            f'style="left:{100 * first / total:.3f}%;width:{100 * page["rows"] / total:.3f}%;'
            f'height:{max(25, 100 * page["bytes"] / most):.0f}%"></i>'
        )
    return "".join(boxes)
