"""Tables with columns of which statements use parts, and what statements read and return with and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_sql
from lance_sql.session import struct_parts


def write_in_halves(place: Path, table: pa.Table, column: str, kind: str, **options: Any) -> None:
    """`table` in several fragments, without some rows; the first ones lack `later`, a copy of `column`."""
    path = place / "t.lance"
    half = len(table) // 2
    first, second = table.slice(0, half), table.slice(half)
    lance_sql.write(first, path, mode="overwrite", max_rows_per_file=max(1, half // 2), **options)
    with lance_sql.connect(place) as session:
        session.sql(f"ALTER TABLE t ADD COLUMN later {kind}")
    lance_sql.write(second.append_column("later", second[column]), path, mode="append")
    lance_sql.open(path).delete("id % 7 = 3")


def read_by(session: lance_sql.Connection, text: str) -> tuple[tuple[list[Any], list[str]], list[str]]:
    """The rows of a statement, with the names of its columns, and what its scans read besides `id`."""
    result = session.sql(text)
    rows, names = result.fetchall(), result.arrow().column_names
    assert result.metrics is not None
    read = {column for scan in result.metrics["scans"] for column in scan["columns"]}
    return (rows, names), sorted(read - {"id"})


def with_all(place: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[Any, Any, list[str]]:
    """The result of a statement that reads parts, its result from whole columns, and the parts."""
    with lance_sql.connect(place) as session:
        found, read = read_by(session, text)
        monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 1 << 60)
        plain, _ = read_by(session, text)
    return found, plain, read
