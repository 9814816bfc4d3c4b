"""Fields within columns, by the paths of DuckDB: ``s.x``, ``list.element.x``, ``map.value.x``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import nearest_name
from lance_engine.errors import ColumnNotFoundError, SchemaMismatchError, UnsupportedFeatureError

from lance_sql.statements.fitting import column_name
from lance_sql.text.kinds import Does
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, quote

_ACTIONS = ("ADD", "ALTER", "DROP", "RENAME")
_BEFORE_NAME = ("COLUMN", "IF", "NOT", "EXISTS")


def quoted_paths(statement: Statement) -> list[tuple[int, int, str]]:
    """Edits that make one quoted name of each path in ALTER TABLE: the parser knows paths only in some."""
    tokens = statement.tokens
    if not statement.does & Does.OBJECTS or [token.upper for token in tokens[:2]] != ["ALTER", "TABLE"]:
        return []
    edits = []
    for place, token in enumerate(tokens[2:], 2):
        starts = token.kind == "word" and token.upper in _ACTIONS and tokens[place - 1].text != "."
        if not starts:
            continue
        place += 1
        while place < len(tokens) and tokens[place].upper in _BEFORE_NAME and tokens[place].kind == "word":
            place += 1
        path = _path(tokens, place)
        if len(path) > 1:
            name = quote(".".join(part.value for part in path))
            edits.append((path[0].start, path[-1].end, name))
    return edits


def _path(tokens: Sequence[Token], place: int) -> list[Token]:
    path: list[Token] = []
    while place < len(tokens) and tokens[place].kind in ("word", "quoted"):
        path.append(tokens[place])
        if [token.text for token in tokens[place + 1 : place + 2]] != ["."]:
            break
        place += 2
    return path


def field_path(schema: pa.Schema, name: str) -> str:
    """The path of a column or field as datasets spell it, ignoring case.

    ColumnNotFoundError suggests a name.
    """
    top, *parts = name.split(".")
    field = schema.field(column_name(schema, top))
    path = [field.name]
    for part in parts:
        if at.is_map(field.type):
            path.append("entries")
        field = _child(field, part, name)
        path.append(field.name)
    return ".".join(path)


def refuse_known_field(schema: pa.Schema, name: str, new: str) -> None:
    """SchemaMismatchError if the struct that holds the field `name` has another called `new`."""
    top, *parts = name.split(".")
    field = schema.field(column_name(schema, top))
    for part in parts[:-1]:
        field = _child(field, part, name)
    own = _child(field, parts[-1], name).name
    others = [child.name for child in field.type] if at.is_struct(field.type) else []
    if new.lower() in {other.lower() for other in others if other != own}:
        raise SchemaMismatchError(
            f"{field.name} already has a field {new!r}, and names are not case sensitive",
            column=name,
            remedy="Choose another name",
        )


def with_field(field: pa.Field, path: Sequence[str], new: pa.Field, name: str) -> pa.Field:
    """`field` with `new` added to the struct at `path` within it."""
    kind = field.type
    if not path:
        if not at.is_struct(kind):
            raise UnsupportedFeatureError(
                f"Fields can only be added to structs, not to {kind}", column=name, remedy="Name a struct"
            )
        return field.with_type(pa.struct([*kind, new]))
    child = _child(field, path[0], name)
    changed = with_field(child, path[1:], new, name)
    return field.with_type(_with_child(kind, child, changed))


def _with_child(kind: pa.DataType, child: pa.Field, changed: pa.Field) -> pa.DataType:
    if at.is_struct(kind):
        return pa.struct([changed if one.name == child.name else one for one in kind])
    if at.is_map(kind):
        key, value = (changed if one.name == child.name else one for one in (kind.key_field, kind.item_field))
        return pa.map_(key, value, kind.keys_sorted)
    if at.is_fixed_size_list(kind):
        return pa.list_(changed, kind.list_size)
    return pa.large_list(changed) if at.is_large_list(kind) else pa.list_(changed)


def _child(field: pa.Field, part: str, name: str) -> pa.Field:
    """The child of a field by the name that DuckDB gives it."""
    kind = field.type
    named: dict[str, pa.Field]
    if at.is_struct(kind):
        named = {child.name: child for child in kind}
    elif at.is_map(kind):
        named = {"key": kind.key_field, "value": kind.item_field}
    elif at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind):
        named = {kind.value_field.name: kind.value_field, "element": kind.value_field}
    else:
        named = {}
    alike = [child for known, child in named.items() if known.lower() == part.lower()]
    if alike and all(child is alike[0] for child in alike):
        return alike[0]
    near = nearest_name(part, named)
    raise ColumnNotFoundError(
        f"Column '{name}' not found: {field.name} has no field {part!r}",
        remedy=f"Did you mean {near!r}?" if near else f"Its fields are {', '.join(named) or 'none'}",
    )
