"""Fields of structs that a scan gives as columns of their own, for queries that use nothing else of these.

Strings then come as dictionaries, numbers without the nulls of structs around them, and conditions on fields
are conditions on columns, which engines offer to scans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from lance_engine.scan.paths import is_read_alone, path_text
from lance_engine.scan.width import estimated_row_bytes

from lance_sql.text.lone_fields import field_uses
from lance_sql.text.tokens import quote

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.schema_tree import Field

    from lance_sql.text.statement import Statement
    from lance_sql.text.used_fields import UsedFields

#: Structs of fewer bytes are read in the time that planning a query again takes.
LEAST_BYTES: Final = 256 << 10


class LoneFields(NamedTuple):
    """`paths` to fields of structs, as the names of columns.

    `columns` are the structs, by lower-case names, of which the query uses nothing else. `edits` replace the
    fields by the columns: begin and end in characters, and the text.
    """

    paths: tuple[str, ...]
    columns: frozenset[str]
    edits: tuple[tuple[int, int, str], ...]


def lone_fields(
    statement: Statement, table: str, dataset: DatasetVersion, used: UsedFields
) -> LoneFields | None:
    """The fields that can be columns of `table`, for a statement that uses parts of columns; None if none."""
    structs = {
        field.name.lower(): field
        for field in dataset.snapshot.schema.fields
        if field.logical_type == "struct" and field.name.lower() in used.paths
    }
    rows = dataset.count_rows()
    chosen = {
        name: field
        for name, field in structs.items()
        if rows * estimated_row_bytes(pa.schema([field.to_arrow()])) >= LEAST_BYTES
        and all(_leaf(field, path) is not None for path in used.paths[name])
    }
    uses = field_uses(statement.tokens, table, chosen) if chosen else None
    if uses is None:
        return None
    edits, columns = [], set()
    for use in uses:
        leaf = _leaf(chosen[use.path[0].lower()], use.path[1:])
        path = None if leaf is None else path_text(dataset.snapshot.schema, [field.name for field in leaf])
        if path is None:
            return None
        edits.append((use.start, use.end, quote(path)))
        columns.add(path)
    names = [field.name.lower() for field in dataset.snapshot.schema.fields]
    others = {*names, *(path.lower() for path in columns)}
    if len(others) < len(names) + len(columns):
        return None  # engines may mistake one for another
    return LoneFields(tuple(sorted(columns)), frozenset(chosen), tuple(edits))


def _leaf(field: Field, names: Sequence[str]) -> tuple[Field, ...] | None:
    """The fields from a column to the one that `names` lead to, if that can be read alone.

    Names are case-insensitive, unless several fields differ only in case.
    """
    path = [field]
    for name in names:
        if path[-1].logical_type != "struct":
            return None
        named = [child for child in path[-1].children if child.name.lower() == name.lower()]
        if len(named) != 1:
            return None
        path += named
    return tuple(path) if is_read_alone(path) else None
