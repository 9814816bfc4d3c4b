"""Write rows to a file or stdout in the chosen format."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa
from lance_engine.base import legible_line, legible_text, rows_as_python, values_as_python
from lance_engine.errors import LanceError
from lance_engine.io import LocalErrors

from lance_sql.display.amounts import interval_text
from lance_sql.display.formats import SHOWING


class Rows(Protocol):
    """Something with rows, such as a query result."""

    def arrow(self) -> pa.Table: ...

    def reader(self) -> pa.RecordBatchReader: ...


class TableRows:
    """The rows of a table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def arrow(self) -> pa.Table:
        return self._table

    def reader(self) -> pa.RecordBatchReader:
        return self._table.to_reader()


class StreamRows:
    """Rows that can be read once."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def arrow(self) -> pa.Table:
        return self._reader.read_all()

    def reader(self) -> pa.RecordBatchReader:
        return self._reader


@contextmanager
def opened(path: str | None, *, binary: bool) -> Iterator[Any]:
    """The file `path`, or stdout. The file is created only after all of it has been written."""
    if path is None:
        if binary and sys.stdout.isatty():
            raise LanceError("This format cannot be printed to a terminal", remedy="Use --output FILE")
        yield sys.stdout.buffer if binary else sys.stdout
        sys.stdout.flush()
        return
    partial = f"{path}.partial"
    try:
        with LocalErrors(path, writing=True):
            file = open(partial, "wb") if binary else open(partial, "w", encoding="utf-8", newline="")  # noqa: SIM115
        with file:
            yield file
        with LocalErrors(path, writing=True):
            os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def write_rows(result: Rows, format: str, target: Any, max_rows: int = 40) -> None:
    """Write `result` to the open file `target`.

    All formats but those of `SHOWING` stream: the rows are never all in memory.
    """
    if format in SHOWING:
        from lance_sql.display.tables import text_table, vertical_text

        shown = {"table": text_table, "line": vertical_text, "markdown": _markdown}[format]
        target.write(shown(result.arrow(), max_rows) + "\n")
        return
    writers = {
        "json": _write_json,
        "ndjson": _write_ndjson,
        "csv": _write_csv,
        "arrow": _write_arrow,
        "parquet": _write_parquet,
    }
    writers[format](result.reader(), target)


def print_table(table: pa.Table, *, as_json: bool, max_rows: int = 1000) -> None:
    """Facts about a dataset: a table to read, or an array of objects."""
    if as_json:
        write_rows(TableRows(table), "json", sys.stdout)
    else:
        from lance_sql.display.tables import fact_showing, text_table

        print(text_table(table, max_rows, fact_showing))
    sys.stdout.flush()


def print_json(value: Any) -> None:
    """One JSON value, indented."""
    print(_json(value, indent=2))


def _write_json(reader: pa.RecordBatchReader, target: Any) -> None:
    separator = "["
    for line in _json_lines(reader):
        target.write(f"{separator}{line}")
        separator = ",\n "
    target.write("[]\n" if separator == "[" else "]\n")


def _write_ndjson(reader: pa.RecordBatchReader, target: Any) -> None:
    for line in _json_lines(reader):
        target.write(f"{line}\n")


def _json_lines(reader: pa.RecordBatchReader) -> Iterator[str]:
    for batch in reader:
        for row in rows_as_python(batch):
            yield _json(row)


def _json(value: Any, indent: int | None = None) -> str:
    """JSON text, with terminal control characters escaped; JSON parsers read the same values."""
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False)
    return (
        text
        if legible_text(text) == text
        else json.dumps(plain(value), indent=indent).replace("\x7f", "\\u007f")
    )


def _write_csv(reader: pa.RecordBatchReader, target: Any) -> None:
    import csv

    writer = csv.writer(target, lineterminator="\n")
    shown = target is sys.stdout and target.isatty()
    writer.writerow([legible_line(name) if shown else name for name in reader.schema.names])
    # Files get values unchanged; a terminal would interpret control characters.
    cell = _csv_shown if shown else _csv_value
    for batch in reader:
        writer.writerows(zip(*(map(cell, values_as_python(column)) for column in batch.columns), strict=True))


def _csv_shown(value: Any) -> Any:
    value = _csv_value(value)
    return legible_text(value) if isinstance(value, str) else value


def _csv_value(value: Any) -> Any:
    """Nulls become empty cells, nested values become JSON."""
    value = plain(value)
    return _json(value) if isinstance(value, dict | list) else value


def _write_arrow(reader: pa.RecordBatchReader, target: Any) -> None:
    with pa.ipc.new_stream(target, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _write_parquet(reader: pa.RecordBatchReader, target: Any) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(target, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)


def _markdown(table: pa.Table, max_rows: int) -> str:
    def cell(value: Any) -> str:
        text = "" if value is None else legible_text(str(plain(value)))
        return text.replace("|", "\\|").replace("\n", "<br>")

    head = "| " + " | ".join(map(cell, table.schema.names)) + " |"
    numbers = [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in table.schema.types]
    rule = "|" + "|".join("---:" if number else "---" for number in numbers) + "|"
    columns = [values_as_python(column) for column in table.slice(0, max_rows).columns]
    rows = ["| " + " | ".join(map(cell, row)) + " |" for row in zip(*columns, strict=True)]
    more = (
        [] if table.num_rows <= max_rows else ["", f"{table.num_rows:,} rows, the first {max_rows:,} shown"]
    )
    return "\n".join([head, rule, *rows, *more])


def plain(value: Any) -> Any:
    """`value` in the types of JSON: decimals, NaN and infinities as text, bytes as hexadecimal text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, pa.MonthDayNano):
        return interval_text(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, decimal.Decimal):
        return (
            int(value)
            if value == value.to_integral_value() and value.as_tuple().exponent == 0
            else str(value)
        )
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | str) else str(value)
