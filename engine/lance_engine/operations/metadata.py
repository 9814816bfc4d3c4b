"""Changes the key-value metadata of a dataset: configuration, table, schema and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from lance_engine.format.operations import MapUpdate, UpdateConfig
from lance_engine.operations.changes import commit_change
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.table.snapshot import Snapshot

Kind: TypeAlias = Literal["config", "table", "schema"]


def update_metadata(
    snapshot: Snapshot,
    kind: Kind,
    entries: Mapping[str, str | None],
    *,
    replace: bool = False,
    column: str | None = None,
) -> Snapshot:
    """Set keys, or remove those with the value None; `replace` removes all keys that are not named.

    `column` selects the metadata of one column instead; ``a.b`` is field ``b`` of the struct ``a``.
    """
    update = MapUpdate(dict(entries), replace)

    def once(snapshot: Snapshot) -> Snapshot:
        if column is not None:
            return commit_change(snapshot, UpdateConfig(fields={snapshot.schema.field(column).id: update}))
        match kind:
            case "config":
                operation = UpdateConfig(config=update)
            case "table":
                operation = UpdateConfig(table_metadata=update)
            case "schema":
                operation = UpdateConfig(schema_metadata=update)
        return commit_change(snapshot, operation)

    return redo_on_conflict(snapshot, once)
