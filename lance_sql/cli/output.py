"""Rows to standard output, in the format asked for."""

from __future__ import annotations

import csv
import datetime
import decimal
import json
import math
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_sql.query.display import text_table

if TYPE_CHECKING:
    from lance_sql.query.result import QueryResult


def write_rows(result: QueryResult, format: str, max_rows: int) -> None:
    """Write `result` as ``table``, ``json`` (an array of objects), ``csv`` or ``arrow`` (an IPC stream).

    All but ``table`` stream: the rows are never in memory at once.
    """
    if format == "table":
        print(text_table(result.arrow(), max_rows))
        return
    {"json": _write_json, "csv": _write_csv, "arrow": _write_arrow}[format](result.reader())
    sys.stdout.flush()


def _write_json(reader: pa.RecordBatchReader) -> None:
    separator = "["
    for batch in reader:
        for row in batch.to_pylist():
            sys.stdout.write(f"{separator}{json.dumps(plain(row), ensure_ascii=False)}")
            separator = ",\n "
    sys.stdout.write("[]\n" if separator == "[" else "]\n")


def _write_csv(reader: pa.RecordBatchReader) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(reader.schema.names)
    for batch in reader:
        writer.writerows(zip(*(map(_csv_value, column.to_pylist()) for column in batch.columns), strict=True))


def _csv_value(value: Any) -> Any:
    """Null is an empty cell, nested values are JSON."""
    value = plain(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _write_arrow(reader: pa.RecordBatchReader) -> None:
    with pa.ipc.new_stream(sys.stdout.buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def plain(value: Any) -> Any:
    """`value` in the types of JSON: decimals, NaN and infinities as text, bytes as hexadecimal text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
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
