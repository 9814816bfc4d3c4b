"""Tables for people: text in a terminal, HTML in a notebook."""

from __future__ import annotations

import html
import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

#: Characters of one value that are shown.
_VALUE_WIDTH = 80
#: Characters of a cut value that a notebook shows when it is pointed at.
_HOVER_WIDTH = 1000


def text_table(table: pa.Table, max_rows: int) -> str:
    """The first `max_rows` rows as aligned text.

    On a terminal too narrow for them values are cut, column names never; elsewhere nothing is cut.
    """
    if table.num_columns == 0:
        return _footer(table, max_rows)
    names = [str(name) for name in table.schema.names]
    rows = _values(table, max_rows)
    widths = [max(map(width_of, column)) for column in zip(names, *rows, strict=True)]
    if sys.stdout.isatty():
        widths = _fitting(widths, [width_of(name) for name in names], shutil.get_terminal_size().columns)
    right = {number for number, kind in enumerate(table.schema.types) if _is_number(kind)}
    lines = [
        "   ".join(
            _padded([_fit(text, width) for text, width in zip(row, widths, strict=True)], widths, right)
        )
        for row in (tuple(names), *rows)
    ]
    lines.insert(1, "─" * (sum(widths) + 3 * (len(widths) - 1)))
    return "\n".join([*(line.rstrip() for line in lines), _footer(table, max_rows)])


def _fitting(widths: list[int], least: list[int], room: int) -> list[int]:
    """Widths that fit into a line of `room`: the widest columns give way, down to the widths in `least`."""
    fitting = list(widths)
    excess = sum(fitting) + 3 * (len(fitting) - 1) - room
    while excess > 0:
        spare, widest = max(
            (width - low, number) for number, (width, low) in enumerate(zip(fitting, least, strict=True))
        )
        if spare <= 0:
            break
        fitting[widest] -= 1
        excess -= 1
    return fitting


def _fit(text: str, width: int) -> str:
    """`text` cut to `width` columns of a terminal."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) >= width:
        text = text[:-1]
    return text + "…"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def html_table(table: pa.Table, max_rows: int) -> str:
    """The first `max_rows` rows as an HTML table with the types of the columns.

    Long values are cut, and tell in full when pointed at.
    """
    aligned = [' style="text-align: right"' if _is_number(field.type) else "" for field in table.schema]
    head = "".join(
        f"<th{style}>{html.escape(field.name)}<br><small>{html.escape(str(field.type))}</small></th>"
        for field, style in zip(table.schema, aligned, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(value, style) for value, style in zip(row, aligned, strict=True)) + "</tr>"
        for row in _values(table, max_rows, _HOVER_WIDTH)
    )
    footer = html.escape(_footer(table, max_rows))
    rows = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{rows}<small>{footer}</small></div>"


def _cell(value: str, style: str) -> str:
    shown = _cut(value, _VALUE_WIDTH)
    title = f' title="{html.escape(value)}"' if shown != value else ""
    return f"<td{style}{title}>{html.escape(shown)}</td>"


def _values(table: pa.Table, max_rows: int, width: int = _VALUE_WIDTH) -> list[tuple[str, ...]]:
    columns = [
        [_cut(_text(value), width) for value in column.slice(0, max_rows).to_pylist()]
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


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
    return text


def _footer(table: pa.Table, max_rows: int) -> str:
    rows = counted(table.num_rows, "row")
    return rows if table.num_rows <= max_rows else f"{rows}, the first {max_rows:,} shown"


def counted(count: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_bytes(size: int) -> str:
    """``512 B``, ``1.5 kB``, ``3.2 MB`` ...: powers of 1000."""
    amount, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


def aligned(rows: list[list[str]], right: Collection[int] = ()) -> list[str]:
    """Lines of `rows` with aligned columns two spaces apart, those numbered in `right` to the right."""
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in rows]


def _padded(row: list[str], widths: list[int], right: Collection[int]) -> Iterator[str]:
    for number, (text, width) in enumerate(zip(row, widths, strict=True)):
        space = " " * (width - width_of(text))
        yield space + text if number in right else text + space


def width_of(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
