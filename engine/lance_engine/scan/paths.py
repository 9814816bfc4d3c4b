"""The columns that a scan or lookup returns: top-level ones, or struct fields by path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_engine.errors import ColumnNotFoundError, InvalidArgumentError, SchemaMismatchError
from lance_engine.scan.code_columns import CodeColumn
from lance_engine.scan.system import SYSTEM_FIELDS

if TYPE_CHECKING:
    from lance_engine.schema_tree import Field, Schema


def field_path(schema: Schema, path: str) -> tuple[Field, ...]:
    """The fields from the top level to the one with this `path`; ColumnNotFoundError suggests a name.

    ``s.b`` is field ``b`` of the struct ``s``. Backticks quote names with a dot in them.
    """
    return schema.path(path, split_path(path))


def split_path(path: str) -> list[str]:
    """The names of a path, without the backticks that quote them."""
    if "`" not in path:
        return path.split(".")
    names, current, quoted = [], "", False
    for character in path:
        if character == "`":
            quoted = not quoted
        elif character == "." and not quoted:
            names.append(current)
            current = ""
        else:
            current += character
    return [*names, current]


def path_text(schema: Schema, names: Sequence[str]) -> str | None:
    """The path to a field of structs as `field_path` reads it; None for unknown names."""
    for text in (".".join(names), ".".join(f"`{name}`" for name in names)):
        try:
            path = field_path(schema, text)
        except ColumnNotFoundError:
            continue
        if [field.name for field in path] == list(names) and is_struct_path(path):
            return text
    return None


def narrowed(path: Sequence[Field]) -> Field:
    """The first field of a path, with only the descendants that lead to the last one.

    A packed struct is stored as one column, and is not reduced.
    """
    below = path[-1]
    for field in reversed(path[:-1]):
        below = field if field.is_leaf else replace(field, children=(below,))
    return below


def places_below(path: Sequence[Field]) -> tuple[int, ...]:
    """The place of each field of a path among the children of the one before, in what `narrowed` returns."""
    places, above = [], narrowed(path)
    for field in path[1:]:
        place = next(number for number, child in enumerate(above.children) if child.id == field.id)
        places.append(place)
        above = above.children[place]
    return tuple(places)


def is_struct_path(path: Sequence[Field]) -> bool:
    """Whether a path only leads through structs, so that a row has a single value."""
    return all(field.logical_type == "struct" for field in path[:-1])


def is_read_alone(path: Sequence[Field]) -> bool:
    """Whether the last field of a path below a struct can be decoded without the structs around it."""
    last = path[-1]
    return (
        len(path) > 1
        and is_struct_path(path)
        and last.is_leaf
        and last.logical_type != "struct"
        and not any(field.is_packed or field.is_blob for field in path)
        and not last.is_json
        and not pa.types.is_dictionary(last.arrow_type)
    )


def column_names(schema: Schema, columns: Any) -> tuple[Any, ...]:
    """The columns of an argument, all if it is None; InvalidArgumentError for a single name."""
    if columns is None:
        return tuple(schema.names)
    if isinstance(columns, str):
        raise InvalidArgumentError(
            f"columns must be a list of names, not {columns!r}", remedy=f"Write columns=[{columns!r}]"
        )
    try:
        return tuple(columns)
    except TypeError:
        raise InvalidArgumentError(f"columns must be a list of names, not {columns!r}") from None


def arrow_field(schema: Schema, name: str) -> pa.Field:
    """A column of a scan, under its requested name; null if a parent struct is null."""
    if name in SYSTEM_FIELDS:
        return SYSTEM_FIELDS[name]
    path = field_path(schema, name)
    if len(path) == 1 and path[0].name == name:
        return path[0].to_arrow()
    if not is_struct_path(path):
        raise SchemaMismatchError(
            "Cannot select a field of list items",
            column=name,
            remedy=f"Read the column '{path[0].name}'",
        )
    nullable = any(field.nullable for field in path)
    return path[-1].to_arrow().with_name(name).with_nullable(nullable)


def nested_columns(schema: Schema, names: Sequence[str]) -> tuple[str | Field, ...]:
    """Columns whose top-level fields only contain the descendants on some paths; without duplicates.

    The fields of a struct are in the order of the schema.
    """
    wanted: dict[str, set[int] | None] = {}
    for name in names:
        if name in SYSTEM_FIELDS:
            wanted[name] = None
            continue
        path = field_path(schema, name)
        kept = wanted.setdefault(path[0].name, set())
        if len(path) == 1:
            wanted[path[0].name] = None
        elif kept is not None:
            kept.add(path[-1].id)
    return tuple(
        name if kept is None else _with_only(schema.path(name, [name])[0], kept)
        for name, kept in wanted.items()
    )


def paths_below(field: Field) -> list[str]:
    """The paths to the fields of a struct, only through structs."""
    if field.logical_type != "struct":
        return [field.name]
    return [f"{field.name}.{path}" for child in field.children for path in paths_below(child)]


def top_level_fields(schema: Schema, names: Iterable[str | Field | CodeColumn]) -> list[Field]:
    """The top-level fields of columns, without system columns."""
    stored = (name.source if isinstance(name, CodeColumn) else name for name in names)
    return [
        field_path(schema, name)[0] if isinstance(name, str) else name
        for name in stored
        if not isinstance(name, str) or name not in SYSTEM_FIELDS
    ]


def _with_only(field: Field, ids: set[int]) -> Field:
    """A field with only the descendants that lead to some others; a packed struct is not reduced."""
    if field.id in ids or field.is_leaf:
        return field
    children = (
        _with_only(child, ids) for child in field.children if any(node.id in ids for node in child.walk())
    )
    return replace(field, children=tuple(children))
