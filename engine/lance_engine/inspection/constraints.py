"""The constraints of a version as a table."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from lance_engine.table.constraints import Key, constraints_of
from lance_engine.table.snapshot import Snapshot

CONSTRAINTS_SCHEMA: Final = pa.schema(
    [
        ("constraint_name", pa.string()),
        ("constraint_type", pa.string()),
        ("constraint_column_names", pa.list_(pa.string())),
        ("constraint_text", pa.string()),
        ("enforced", pa.bool_()),
    ]
)


def constraints(snapshot: Snapshot) -> pa.Table:
    """One row per key, CHECK condition and column that is NOT NULL, named as in ``duckdb_constraints()``."""
    declared = constraints_of(snapshot.schema)
    rows = [_key(key) for key in declared.keys]
    rows += [_row(check.name, "CHECK", None, f"CHECK({check.condition})") for check in declared.checks]
    rows += [
        _row(f"{field.name}_not_null", "NOT NULL", [field.name], "NOT NULL")
        for field in snapshot.schema.fields
        if not field.nullable
    ]
    return pa.Table.from_pylist(rows, schema=CONSTRAINTS_SCHEMA)


def _key(key: Key) -> dict[str, Any]:
    text = f"{key.kind}({', '.join(key.columns)})"
    return _row(key.name, key.kind, list(key.columns), text, is_enforced=key.is_enforced)


def _row(
    name: str, kind: str, columns: list[str] | None, text: str, *, is_enforced: bool = True
) -> dict[str, Any]:
    values = (name, kind, columns, text, is_enforced)
    return dict(zip(CONSTRAINTS_SCHEMA.names, values, strict=True))
