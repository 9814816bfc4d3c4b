"""The metadata of a dataset as SQL tables: ``FROM 'x.lance'.fragments``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from lance_engine.dataset import Dataset
from lance_engine.inspection.inspector import Inspector


def _inspections() -> tuple[str, ...]:
    """The methods of ``ds.inspect`` that answer with a table."""
    return tuple(
        name
        for name, method in vars(Inspector).items()
        if not name.startswith("_") and getattr(method, "__annotations__", {}).get("return") == "pa.Table"
    )


_TAGS = "tags"

#: The names of the metadata tables.
METADATA_TABLES = (*_inspections(), *((_TAGS,) if not hasattr(Inspector, _TAGS) else ()))

_TAGS_SCHEMA = pa.schema([("name", pa.string()), ("version", pa.uint64()), ("branch", pa.string())])


def metadata_table(dataset: Dataset, name: str) -> pa.Table:
    """One of `METADATA_TABLES`, of the version that `dataset` is; versions and tags are those of now."""
    if name == _TAGS and not hasattr(dataset.inspect, _TAGS):
        rows: list[dict[str, Any]] = [
            {"name": tag.name, "version": tag.version, "branch": tag.branch} for tag in dataset.tags.list()
        ]
        return pa.Table.from_pylist(rows, schema=_TAGS_SCHEMA)
    table: pa.Table = getattr(dataset.inspect, name)()
    return table
