"""The formats in which rows are written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: Formats of rows, with the file extensions that imply them.
FORMATS: Final = {
    "table": (".txt",),
    "line": (),
    "markdown": (".md",),
    "json": (".json",),
    "ndjson": (".ndjson", ".jsonl"),
    "csv": (".csv",),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".arrows"),
}
#: Formats for people, which show the first rows of every statement; the others contain one table.
SHOWING: Final = ("table", "line", "markdown")
#: Formats that are not text.
BINARY: Final = ("parquet", "arrow")


def format_of(path: str) -> str | None:
    """The format that the extension of a file implies, if any."""
    ending = Path(path).suffix.lower()
    return next((name for name, endings in FORMATS.items() if ending in endings), None)
