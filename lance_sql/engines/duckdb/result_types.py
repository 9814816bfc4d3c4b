"""The Arrow types in which DuckDB returns columns of its own types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from lance_sql.engines.duckdb.settings import Changes


class ResultTypes:
    """The Arrow fields of results, by the DuckDB types of their columns.

    DuckDB only says them with a result, so they are kept, until `changes` may have changed a setting or a
    type.
    """

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._state = changes.state
        self._known: dict[str, pa.Field] = {}

    def schema(self, relation: Any, ask: Callable[[], pa.Schema]) -> pa.Schema:
        """The schema of the rows of a relation, which `ask` returns too, but slowly."""
        state = self._changes.state
        if state is None:
            return ask()
        if state != self._state:
            self._state, self._known = state, {}
        known, kinds = self._known, [str(kind) for kind in relation.types]
        if any(kind not in known for kind in kinds):
            schema = ask()
            known.update(zip(kinds, schema, strict=True))
            return schema
        names = relation.columns
        return pa.schema([known[kind].with_name(name) for kind, name in zip(kinds, names, strict=True)])
