"""SQL for values of DuckDB's types from what datasets store of them, and the reverse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as at

from lance_sql.types.columns import NESTED, children, column, walk
from lance_sql.types.declared import MAX_DIGITS, has_wide_decimals
from lance_sql.types.duckdb_names import duckdb_kinds, quoted
from lance_sql.types.kinds import has_extension

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

#: Types whose values leave DuckDB as those of another, because they are stored so.
_LEFT_AS: Final = {
    "bignum": "VARCHAR",
    "bit": "VARCHAR",
    "enum": "VARCHAR",
    "interval": "VARCHAR",
    "time with time zone": "VARCHAR",
    "uuid": "BLOB",
}
#: Types that are stored as another type, which DuckDB casts.
_CAST: Final = {*_LEFT_AS, "tuple", "union"} - {"uuid"}


def read_columns(schema: pa.Schema) -> str | None:
    """The select list for columns of `schema`, stored in a dataset; None if DuckDB reads all as they are."""
    if not any(map(has_extension, schema)):
        return None
    kinds = duckdb_kinds(schema)
    if not any(map(_is_cast, kinds)):
        return None
    return ", ".join(
        f"{from_stored(quoted(name), kind)} AS {quoted(name)}"
        for name, kind in zip(schema.names, kinds, strict=True)
    )


def from_stored(place: str, kind: DuckDBPyType) -> str:
    """The value of a type from what is stored of it."""
    if not _is_cast(kind):
        return place
    if kind.id == "union":
        tag = column("value", kind).type.field(0).name
        cases = "".join(
            f" WHEN {_text(name)} THEN CAST(union_value({quoted(name)} := "
            f"{from_stored(_part(place, name), child)}) AS {kind})"
            for name, child in children(kind)
        )
        return f"CASE {_part(place, tag)}{cases} END"
    if not _contains(kind, "union"):
        return f"CAST({place} AS {kind})"
    if kind.id == "tuple":
        named = [(f"element{number}", child) for number, (_, child) in enumerate(children(kind), 1)]
        place = _struct(place, [(name, from_stored(_part(place, name), child)) for name, child in named])
    else:
        place = _rebuilt(place, kind, from_stored)
    return f"CAST({place} AS {kind})"


def stored_value(expression: str, field: pa.Field) -> str:
    """The value of an expression for a column, in a form that Arrow carries without loss.

    `stored.in_type` makes it a value of the column.
    """
    (kind,) = duckdb_kinds(pa.schema([field]))
    if has_wide_decimals(field.type):
        return f"list_transform([{expression}], lambda v: {_wide_decimal(field, kind)})[1]"
    value = f"CAST({expression} AS {kind})"
    if not _contains(kind, "union"):
        return to_stored(value, kind, field.type)
    # the expression must be computed once
    return f"list_transform([{value}], lambda v: {to_stored('v', kind, field.type)})[1]"


def unchanged_value(place: str, field: pa.Field) -> str:
    """The same for the value of the column itself, which is shown and not stored: it may lose digits."""
    if not has_wide_decimals(field.type):
        return stored_value(place, field)
    return f"CAST({place} AS VARCHAR)" if at.is_decimal(field.type) else place


def _wide_decimal(field: pa.Field, kind: DuckDBPyType) -> str:
    """The value `v` as text for a decimal of more digits than DuckDB has; an error if it has lost some."""
    refused = _text(  # the type contains names of fields, which may be anything
        f"DuckDB computes with DOUBLE in place of {field.type}, which loses digits. Cast the value to "
        f"DECIMAL({MAX_DIGITS}, ...) or VARCHAR, or use Python's Dataset.update, merge or write"
    )
    if not at.is_decimal(field.type):
        return f"CASE WHEN v IS NOT NULL THEN error({refused}) ELSE CAST(NULL AS {kind}) END"
    return (
        f"CASE WHEN v IS NOT NULL AND typeof(v) IN ('DOUBLE', 'FLOAT') THEN error({refused}) "
        "ELSE CAST(v AS VARCHAR) END"
    )


def to_stored(place: str, kind: DuckDBPyType, stored: pa.DataType) -> str:
    """The value of a type in a form that Arrow carries without loss, if it is stored as `stored`."""
    if kind.id == "union":
        members = [
            (field.name, to_stored(f"union_extract({place}, {_text(name)})", child, field.type))
            for field, (name, child) in zip([*stored][1:], children(kind), strict=True)
        ]
        return _struct(place, [(stored.field(0).name, f"CAST(union_tag({place}) AS VARCHAR)"), *members])
    if not _contains(kind, "union"):
        left = _left_as(kind, stored)
        return f"CAST({place} AS {left})" if left else place
    if kind.id == "tuple":
        parts = [
            (field.name, to_stored(f"struct_extract({place}, {number})", child, field.type))
            for number, (field, (_, child)) in enumerate(zip(stored, children(kind), strict=True), 1)
        ]
        return _struct(place, parts)
    inner = iter(inner_types(stored))
    return _rebuilt(place, kind, lambda part, child: to_stored(part, child, next(inner)))


def _is_cast(kind: DuckDBPyType) -> bool:
    """Whether DuckDB reads what is stored of a type as another type."""
    return any(inner.id in _CAST or _is_stored_as_list(inner) for inner in walk(kind))


def _is_stored_as_list(kind: DuckDBPyType) -> bool:
    return kind.id == "array" and isinstance(column("value", kind).type, pa.ListType)


def _contains(kind: DuckDBPyType, name: str) -> bool:
    return any(inner.id == name for inner in walk(kind))


def _left_as(kind: DuckDBPyType, stored: pa.DataType) -> str:
    """The type as which values leave DuckDB; empty if that is their own."""
    if kind.id == "interval" and at.is_duration(stored):
        return ""
    if kind.id in _LEFT_AS or kind.id not in NESTED:
        return _LEFT_AS.get(kind.id, "")
    kinds = [child for _, child in children(kind) if not isinstance(child, int)]
    left = [_left_as(child, inner) for child, inner in zip(kinds, inner_types(stored), strict=True)]
    if _is_stored_as_list(kind):
        return f"{left[0] or kinds[0]}[]"
    kept = iter(left)
    return with_inner(kind, lambda child: next(kept) or str(child)) if any(left) else ""


def with_inner(kind: DuckDBPyType, inner: Callable[[DuckDBPyType], str]) -> str:
    """DuckDB's name of a type with other types inside it."""
    if kind.id not in NESTED:
        return str(kind)
    parts = [(name, child if isinstance(child, int) else inner(child)) for name, child in children(kind)]
    return _WRITTEN[kind.id](parts)


def _named(parts: list[tuple[str, Any]]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in parts)


_WRITTEN: Final[Mapping[str, Callable[[list[tuple[str, Any]]], str]]] = {
    "list": lambda parts: f"{parts[0][1]}[]",
    "array": lambda parts: f"{parts[0][1]}[{parts[1][1]}]",
    "map": lambda parts: f"MAP({parts[0][1]}, {parts[1][1]})",
    "tuple": lambda parts: f"TUPLE({', '.join(str(kind) for _, kind in parts)})",
    "struct": lambda parts: f"STRUCT({_named(parts)})",
    "union": lambda parts: f"UNION({_named(parts)})",
}


# ---- values inside others ------------------------------------------------------------------------------


def _rebuilt(place: str, kind: DuckDBPyType, convert: Callable[[str, DuckDBPyType], str]) -> str:
    """A list, array, struct or map of converted values."""
    inner = children(kind)
    if kind.id == "struct":
        return _struct(place, [(name, convert(_part(place, name), child)) for name, child in inner])
    if kind.id == "map":
        packed = ", ".join(f"{part} := {convert(_part('v', part), child)}" for part, child in inner)
        return f"map_from_entries(list_transform(map_entries({place}), lambda v: struct_pack({packed})))"
    return f"list_transform({place}, lambda v: {convert('v', inner[0][1])})"


def _struct(place: str, parts: list[tuple[str, str]]) -> str:
    packed = ", ".join(f"{quoted(name)} := {value}" for name, value in parts)
    return f"CASE WHEN {place} IS NOT NULL THEN struct_pack({packed}) END"


def _part(place: str, name: str) -> str:
    return f"struct_extract({place}, {_text(name)})"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def inner_types(kind: pa.DataType) -> list[pa.DataType]:
    """The types of the fields, items, or keys and values of a nested type."""
    if at.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(place).type for place in range(kind.num_fields)]
