"""The names of the metadata tables: ``FROM 'x.lance'.fragments``."""

from __future__ import annotations

from lance_engine.inspection import Inspector


def _inspections() -> tuple[str, ...]:
    """The methods of ``ds.inspect`` that return a table."""
    return tuple(
        name
        for name, method in vars(Inspector).items()
        if not name.startswith("_") and getattr(method, "__annotations__", {}).get("return") == "pa.Table"
    )


TAGS = "tags"
INDEXES = "indexes"

METADATA_TABLES = (*_inspections(), TAGS, INDEXES)
