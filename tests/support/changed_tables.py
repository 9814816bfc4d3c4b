"""Applies changes to copies of tables and says where lance-sql, pylance 14 and the expected rows differ."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from table_changes import SEVERAL_STEPS, Change, Rows, by_id, new_rows

import lance_sql

#: Filters that indices answer, and the same in Python.
_FILTERS: dict[str, Any] = {
    "id >= 4 AND id < 40": lambda row: 4 <= row["id"] < 40,
    "t = 'v3'": lambda row: row["t"] == "v3",
    "t IS NULL": lambda row: row["t"] is None,
    "t IS NOT NULL": lambda row: row["t"] is not None,
    "array_has(l, 7)": lambda row: 7 in row["l"],
    "x < 3": lambda row: row["x"] < 3,
    "contains(t, 'v3')": lambda row: "v3" in (row["t"] or ""),
}


class RefusedError(Exception):
    """lance-sql refused the change, and left every file as it was."""


def apply(change: Change, source: Path, target: Path) -> tuple[Rows, list[str]]:
    """Change a copy of a table; the rows that it must have now, and what is wrong.

    RefusedError if lance-sql refuses it without a trace.
    """
    shutil.copytree(source, target)
    uri = str(target)
    rows = lance_sql.open(uri).scan().to_table().to_pylist()
    before, version = _files(target), lance_sql.open(uri).version
    try:
        expected = by_id(change(uri, rows))
    except lance_sql.LanceError as error:
        if change not in SEVERAL_STEPS:
            assert _files(target) == before
        raise RefusedError(error.message) from error
    if version == lance_sql.open(uri).version:
        # What pylance does to a table that nobody changed is not ours.
        assert _files(target) == before
        return expected, []
    return expected, [
        *_differences(uri, expected, _missed(str(source), rows)),
        *_after_pylance(uri, expected),
    ]


def _files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def _missed(uri: str, rows: Rows) -> set[str]:
    """The filters for which pylance 14 finds other rows by the indices of the table, before any change.

    Bitmaps of release 0.16 do not find all nulls: pylance loses these rows, and has to scan for them.
    """
    if not lance_sql.open(uri).inspect.indices().num_rows:
        return set()  # nothing to look up, nor does pylance filter every table as it was
    theirs, names = lance.dataset(uri), set(rows[0]) if rows else set()
    return {
        where
        for where, matches in _FILTERS.items()
        if _column(where) in names
        and sorted(theirs.to_table(["id"], where)["id"].to_pylist())
        != sorted(row["id"] for row in rows if matches(row))
    }


def _column(where: str) -> str:
    return next(name for name in ("id", "t", "l", "x") if name in re.split(r"\W", where))


def _differences(uri: str, expected: Rows, missed: set[str]) -> Iterator[str]:
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    if by_id(ours.scan().to_table().to_pylist()) != expected:
        yield "lance-sql reads other rows"
    if by_id(theirs.to_table().to_pylist()) != expected:
        yield "pylance 14 reads other rows"
    if (ours.count_rows(), theirs.count_rows()) != (len(expected), len(expected)):
        yield "other counts"
    names = set(expected[0]) if expected else set()
    for where, matches in _FILTERS.items():
        if _column(where) not in names:
            continue
        ids = [row["id"] for row in expected if matches(row)]
        found = sorted(ours.scan(["id"], filter=where).to_table()["id"].to_pylist())
        if found != ids:
            yield f"{where}: lance-sql finds {found}, not {ids}"
        by_index = where not in missed
        found = sorted(theirs.to_table(["id"], where, use_scalar_index=by_index)["id"].to_pylist())
        # pylance 14 takes values of version 0.1 for null in filters only, or the reverse.
        if found != ids and theirs.data_storage_version != "0.1":
            yield f"{where}: pylance 14 finds {found}, not {ids}"
    if {"t", "v"} <= names and pa.types.is_string(ours.schema.field("t").type):
        yield from _searches(ours, theirs, expected)
    theirs.validate()
    row_ids = ours.scan(["_rowid"]).to_table()["_rowid"].to_pylist()
    if len(set(row_ids)) < len(row_ids) or len(ours.take(row_ids[::-5])) != len(row_ids[::-5]):
        yield "row ids are not unique"


def _searches(ours: lance_sql.Dataset, theirs: Any, expected: Rows) -> Iterator[str]:
    target = [float(number) for number in range(8)]

    def distance(row: dict[str, Any]) -> float:
        return float(sum((a - b) ** 2 for a, b in zip(row["v"], target, strict=True)))

    best = sorted(map(distance, expected))[:3]
    options = {"column": "v", "q": target, "k": 3, "nprobes": 100, "refine_factor": 100}
    found = [distance(row) for row in theirs.to_table(nearest=options).to_pylist()]
    if found != best:
        yield f"pylance 14 finds vectors at {found}, not {best}"
    nearest = ours.nearest("v", target, k=3, nprobes=100, refine_factor=100).to_pylist()
    if sorted(map(distance, nearest)) != best:
        yield f"lance-sql finds vectors at {sorted(map(distance, nearest))}, not {best}"
    ids = [row["id"] for row in expected if row["t"] == "v3"]
    found = sorted(ours.search("v3", "t", k=1000)["id"].to_pylist())
    if found != ids:
        yield f"lance-sql finds the text in {found}, not {ids}"


def _after_pylance(uri: str, expected: Rows) -> Iterator[str]:
    """Whether pylance 14 can go on with the table."""
    copy = f"{uri}-continued"
    shutil.copytree(uri, copy)
    added = new_rows(copy, range(5000, 5003))
    lance.write_dataset(added, copy, mode="append")
    lance.dataset(copy).delete("id = 1")
    try:
        lance.dataset(copy).optimize.compact_files()
    except OSError as error:
        # pylance 14 panics where it has to move the rows of full-text indices up to 0.27, changed or not.
        if "inverted/builder.rs" not in str(error):
            raise
    left = by_id([*(row for row in expected if row["id"] != 1), *added.to_pylist()])
    if by_id(lance.dataset(copy).to_table().to_pylist()) != left:
        yield "pylance 14 reads other rows after its own changes"
    if by_id(lance_sql.open(copy).scan().to_table().to_pylist()) != left:
        yield "lance-sql reads other rows after pylance's changes"
    shutil.rmtree(copy)


def as_read_by_others(rows: Rows) -> Any:
    """Rows as they come out of another process."""
    return json.loads(json.dumps(rows, default=str))
