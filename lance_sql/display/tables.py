"""Tables for people: text in a terminal, HTML in a notebook."""

from __future__ import annotations

import html
import shutil
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa
from lance_engine.base import legible_line, values_as_python

from lance_sql.display.amounts import counted, interval_text
from lance_sql.display.plans import plan_html, plan_text

#: Maximum number of characters shown per value.
_VALUE_WIDTH = 80
#: Maximum number of characters where there is room: in a line of its own, in the tooltip of a cell.
_WHOLE_WIDTH = 1000


#: Formatter of values; chosen by column name.
Showing = Callable[[Any], str]


def text_table(table: pa.Table, max_rows: int, showing: Callable[[str], Showing] = lambda _: _text) -> str:
    """The first `max_rows` rows as aligned text.

    Long values are truncated. If the terminal is too narrow, strings are truncated further, but column names,
    numbers, dates and times are not; then columns in the middle are left out, and the last line says so. The
    result of an EXPLAIN is shown as a plan.
    """
    if table.num_columns == 0:
        return _footer(table, max_rows)
    plan = plan_text(table)
    if plan is not None:
        return plan
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    shown, left_out = table, 0
    if room is not None:
        shown, left_out = _without_middle(table, max_rows, room, showing)
    names = [legible_line(name) for name in shown.schema.names]
    rows = _values(shown, max_rows, showing=showing)
    widths = [max(map(width_of, column)) for column in zip(names, *rows, strict=True)]
    if room is not None:
        widths = _fitting(widths, _least_widths(shown, names, widths), room)
    right = {number for number, kind in enumerate(shown.schema.types) if _is_number(kind)}
    lines = [
        "   ".join(
            _padded([_fit(text, width) for text, width in zip(row, widths, strict=True)], widths, right)
        )
        for row in (tuple(names), *rows)
    ]
    lines.insert(1, "─" * (sum(widths) + 3 * (len(widths) - 1)))
    footer = _footer(table, max_rows)
    if left_out:
        footer += f", {counted(table.num_columns, 'column')}, {table.num_columns - left_out} shown"
    return "\n".join([*(line.rstrip() for line in lines), footer])


def vertical_text(table: pa.Table, max_rows: int) -> str:
    """The first `max_rows` rows, each as lines of a column and its value."""
    plan = plan_text(table)
    if plan is not None:
        return plan
    names = [legible_line(name) for name in table.schema.names]
    lines = []
    for number, row in enumerate(_values(table, max_rows, _WHOLE_WIDTH) if names else [], 1):
        lines += [f"── row {number:,} ──", *aligned([list(pair) for pair in zip(names, row, strict=True)])]
    return "\n".join([*lines, _footer(table, max_rows)])


def _least_widths(table: pa.Table, names: list[str], widths: list[int]) -> list[int]:
    """The minimum legible widths of columns: strings may be truncated to the width of the column name."""
    return [
        width_of(name) if _may_be_cut(kind) else width
        for name, kind, width in zip(names, table.schema.types, widths, strict=True)
    ]


def _without_middle(
    table: pa.Table, max_rows: int, room: int, showing: Callable[[str], Showing]
) -> tuple[pa.Table, int]:
    """The table, or its first and last columns with a marker between them, and the number left out."""
    names = [legible_line(name) for name in table.schema.names]
    columns = (
        zip(*_values(table, max_rows, showing=showing), strict=True) if table.num_rows else [()] * len(names)
    )
    widths = [max(map(width_of, (name, *values))) for name, values in zip(names, columns, strict=True)]
    least = _least_widths(table, names, widths)
    if sum(least) + 3 * (len(least) - 1) <= room:
        return table, 0
    first = last = 0
    left = room - 1  # the marker
    while first + last < len(least):
        width = least[first] if first <= last else least[-1 - last]
        if first and width + 3 > left:
            break
        left -= width + 3
        first, last = (first + 1, last) if first <= last else (first, last + 1)
    left_out = len(least) - first - last
    if not left_out:
        return table, 0
    kept = [*range(first), *range(len(least) - last, len(least))]
    shown = table.select(kept)
    mark = pa.array(["…"] * table.num_rows, pa.string())
    return shown.add_column(first, "…", mark), left_out


def _may_be_cut(kind: pa.DataType) -> bool:
    return not (_is_number(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind))


def _fitting(widths: list[int], least: list[int], room: int) -> list[int]:
    """Widths that fit into a line of `room`: the widest columns shrink first, down to `least`."""
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
    """`text` truncated to `width` terminal columns."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) >= width:
        text = text[:-1]
    return text + "…"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def html_table(table: pa.Table, max_rows: int) -> str:
    """The first `max_rows` rows as an HTML table with the types of the columns.

    Long values are truncated, and shown in full in a tooltip.
    """
    plan = plan_text(table)
    if plan is not None:
        return plan_html(plan)
    # Notebooks right-align everything by default.
    aligned = [
        f' style="text-align: {"right" if _is_number(field.type) else "left"}"' for field in table.schema
    ]
    head = "".join(
        f"<th{style}>{html.escape(legible_line(field.name))}<br><small>{html.escape(legible_line(str(field.type)))}</small></th>"
        for field, style in zip(table.schema, aligned, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(value, style) for value, style in zip(row, aligned, strict=True)) + "</tr>"
        for row in _values(table, max_rows, _WHOLE_WIDTH)
    )
    footer = html.escape(_footer(table, max_rows))
    rows = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{rows}<small>{footer}</small></div>"


def _cell(value: str, style: str) -> str:
    shown = _cut(value, _VALUE_WIDTH)
    title = f' title="{html.escape(value)}"' if shown != value else ""
    return f"<td{style}{title}>{html.escape(shown)}</td>"


def _values(
    table: pa.Table,
    max_rows: int,
    width: int = _VALUE_WIDTH,
    showing: Callable[[str], Showing] = lambda _: _text,
) -> list[tuple[str, ...]]:
    columns = []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        text = showing(name)
        columns.append([_cut(text(value), width) for value in values_as_python(column.slice(0, max_rows))])
    return list(zip(*columns, strict=True))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _text(value: Any) -> str:
    """One line for `value`, as DuckDB shows it; control characters of a string are shown as escapes."""
    if value is None:
        return "NULL"
    if isinstance(value, list) and value and all(type(item) is tuple for item in value):  # of a map
        text = "{" + ", ".join(f"{_text(key)}={_text(item)}" for key, item in value) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(map(_text, value)) + "]"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{key!r}: {_text(item)}" for key, item in value.items()) + "}"
    elif isinstance(value, bytes):
        text = "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02X}" for byte in value)
    elif isinstance(value, pa.MonthDayNano):
        text = interval_text(value)
    elif isinstance(value, str):
        text = "".join(character if character.isprintable() else repr(character)[1:-1] for character in value)
    else:
        text = legible_line(str(value))
    return text


def fact_showing(name: str) -> Showing:
    """Formats facts about a dataset, as opposed to its values.

    Yes and no for booleans, nothing for null, and separators in numbers, except in versions and ids.
    """
    return _text_of_id if name.endswith(("version", "id", "ids")) else _text_of_fact


def _text_of_fact(value: Any) -> str:
    return f"{value:,}" if type(value) is int else _text_of_id(value)


def _text_of_id(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _text(value)


def _footer(table: pa.Table, max_rows: int) -> str:
    rows = counted(table.num_rows, "row")
    return rows if table.num_rows <= max_rows else f"{rows}, the first {max_rows:,} shown"


def aligned(rows: list[list[str]], right: Collection[int] = ()) -> list[str]:
    """Lines of `rows` with aligned columns two spaces apart; those numbered in `right` are right-aligned."""
    rows = [[legible_line(text) for text in row] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in rows]


def _padded(row: list[str], widths: list[int], right: Collection[int]) -> Iterator[str]:
    for number, (text, width) in enumerate(zip(row, widths, strict=True)):
        space = " " * (width - width_of(text))
        yield space + text if number in right else text + space


def width_of(text: str) -> int:
    """The width of `text` on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
