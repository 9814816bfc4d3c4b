"""Tables for people: text in a terminal, HTML in a notebook."""

from __future__ import annotations

import html
import io
import shutil
import sys
from typing import Any

import pyarrow as pa

#: Characters of one value that are shown.
_VALUE_WIDTH = 80
#: Width where no terminal limits it: wide enough for every column.
_UNLIMITED = 1 << 16


def text_table(table: pa.Table, max_rows: int) -> str:
    """The first `max_rows` rows as aligned text.

    On a terminal too narrow for them values are cut, column names never; elsewhere nothing is cut.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if table.num_columns == 0:
        return _footer(table, max_rows)
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="")
    for field in table.schema:
        grid.add_column(
            Text(field.name),
            justify="right" if _is_number(field.type) else "left",
            no_wrap=True,
            min_width=len(field.name),
        )
    for row in _values(table, max_rows):
        grid.add_row(*(Text(value) for value in row))
    names_width = sum(len(name) + 3 for name in table.schema.names)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNLIMITED
    console = Console(file=io.StringIO(), width=max(width, names_width), no_color=True, highlight=False)
    with console.capture() as capture:
        console.print(grid)
    lines = (line.rstrip() for line in capture.get().splitlines())
    return "\n".join([*lines, _footer(table, max_rows)])


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


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
    """One line for `value`; control characters of a string are shown as escapes."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        text = "[" + ", ".join(map(_text, value)) + "]"
    elif isinstance(value, str):
        text = "".join(character if character.isprintable() else repr(character)[1:-1] for character in value)
    else:
        text = str(value)
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 1] + "…"


def _footer(table: pa.Table, max_rows: int) -> str:
    rows = counted(table.num_rows, "row")
    return rows if table.num_rows <= max_rows else f"{rows}, the first {max_rows:,} shown"


def counted(count: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
