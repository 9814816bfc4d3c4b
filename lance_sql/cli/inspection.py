"""The report of ``lance-sql inspect``."""

from __future__ import annotations

import json

import pyarrow as pa
from lance_engine import inspection

from lance_sql.api import open as open_dataset
from lance_sql.cli.output import plain
from lance_sql.query.display import text_table

#: Rows shown of each part; ``--json`` has all.
_SHOWN_ROWS = 100


def inspect_dataset(uri: str, version: int | None, *, as_json: bool) -> str:
    """Versions, fragments and columns of a dataset, as tables to read or as one JSON object."""
    dataset = open_dataset(uri, version)
    parts: dict[str, pa.Table] = {
        "versions": inspection.versions(uri),
        "fragments": inspection.fragments(dataset.snapshot),
        "columns": inspection.columns(dataset.snapshot),
    }
    if as_json:
        report = {"uri": dataset.uri, "version": dataset.version, "rows": dataset.count_rows()}
        tables = {name: plain(table.to_pylist()) for name, table in parts.items()}
        return json.dumps(report | tables, indent=2, ensure_ascii=False)
    sections = [f"{name}\n{text_table(table, _SHOWN_ROWS)}" for name, table in parts.items()]
    head = f"{dataset.uri}\nversion {dataset.version}, {dataset.count_rows():,} rows"
    return "\n\n".join([head, *sections])
