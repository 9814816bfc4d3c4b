"""Tables for people: text in a terminal, HTML in a notebook."""

from __future__ import annotations

import html
import io
from typing import Any

import pyarrow as pa

#: Characters of one value that are shown.
_VALUE_WIDTH = 80


def text_table(table: pa.Table, max_rows: int, width: int | None = None) -> str:
    """The first `max_rows` rows as aligned text, `width` characters wide (None: as wide as the terminal)."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if table.num_columns == 0:
        return _footer(table, max_rows)
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="")
    for field in table.schema:
        right = (
            pa.types.is_integer(field.type)
            or pa.types.is_floating(field.type)
            or pa.types.is_decimal(field.type)
        )
        grid.add_column(Text(field.name), justify="right" if right else "left")
    for row in _values(table, max_rows):
        grid.add_row(*(Text(value) for value in row))
    console = Console(file=io.StringIO(), width=width, no_color=True, highlight=False)
    with console.capture() as capture:
        console.print(grid)
    return capture.get() + _footer(table, max_rows)


def html_table(table: pa.Table, max_rows: int) -> str:
    """The first `max_rows` rows as an HTML table."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.schema.names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(value)}</td>" for value in row) + "</tr>"
        for row in _values(table, max_rows)
    )
    footer = html.escape(_footer(table, max_rows))
    rows = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{rows}<small>{footer}</small></div>"


def _values(table: pa.Table, max_rows: int) -> list[tuple[str, ...]]:
    columns = [[_text(value) for value in column.slice(0, max_rows).to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    text = str(value)
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 1] + "…"


def _footer(table: pa.Table, max_rows: int) -> str:
    rows = counted(table.num_rows, "row")
    return rows if table.num_rows <= max_rows else f"{rows}, the first {max_rows:,} shown"


def counted(count: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
