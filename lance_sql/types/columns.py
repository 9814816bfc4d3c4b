"""The columns of a dataset for columns of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.errors import UnsupportedTypeError

from lance_sql.scratch import scratch
from lance_sql.types.kinds import KINDS, opaque, refused

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

#: Deeper types cannot be stored.
_MAX_DEPTH: Final = 64
#: What DuckDB calls types that contain others.
NESTED: Final = ("list", "array", "struct", "tuple", "map", "union")


def columns(names: Sequence[str], kinds: Sequence[DuckDBPyType]) -> pa.Schema:
    """The columns of a dataset for the rows of a query."""
    return pa.schema([column(name, kind) for name, kind in zip(names, kinds, strict=True)])


def column(name: str, kind: DuckDBPyType, nullable: bool = True) -> pa.Field:
    """The column of a dataset for values of a DuckDB type.

    UnsupportedFeatureError for a type whose values would be read back as another type.
    """
    return _field(name, kind, name, nullable)


def children(kind: DuckDBPyType) -> list[tuple[str, Any]]:
    """The names and types inside a nested type, and the numbers among its parameters."""
    if kind.id == "union":  # the first is that of the tag
        return [(name, child) for name, child in kind.children if name]
    return list(kind.children)


def walk(kind: DuckDBPyType) -> Iterator[DuckDBPyType]:
    """A type and all types inside it."""
    yield kind
    if kind.id in NESTED:
        for _, child in children(kind):
            if not isinstance(child, int):
                yield from walk(child)


def _field(name: str, kind: DuckDBPyType, path: str, nullable: bool = True) -> pa.Field:
    if path.count(".") > _MAX_DEPTH:
        raise UnsupportedTypeError(
            "The columns are nested too deeply",
            column=path[:80],
            remedy="Flatten them, or store them as JSON",
        )
    match kind.id:
        case "decimal":
            digits = dict(children(kind))
            return pa.field(name, pa.decimal128(digits["precision"], digits["scale"]), nullable)
        case "enum":
            return pa.field(name, pa.string(), nullable, opaque(str(kind)))
        case "list":
            return pa.field(name, pa.list_(_field("item", _child(kind), f"{path}.item")), nullable)
        case "array":
            return _array(name, kind, path, nullable)
        case "struct":
            return pa.field(name, pa.struct(_fields(children(kind), path)), nullable)
        case "tuple":
            numbered = [(f"element{number}", child) for number, (_, child) in enumerate(children(kind), 1)]
            return pa.field(name, pa.struct(_fields(numbered, path)), nullable, opaque("tuple"))
        case "union":
            names = {member.lower() for member, _ in children(kind)}
            tag = next(tag for length in count() if (tag := "tag" + "_" * length) not in names)
            members = [pa.field(tag, pa.string()), *_fields(children(kind), path)]
            return pa.field(name, pa.struct(members), nullable, opaque("union"))
        case "map":
            inner = dict(children(kind))
            if inner["key"].id == "null":
                raise refused(str(kind), path)
            key = _field("key", inner["key"], f"{path}.key", nullable=False)
            return pa.field(name, pa.map_(key, _field("value", inner["value"], f"{path}.value")), nullable)
        case "geometry" if str(kind) != "GEOMETRY":  # with the name of its reference system
            with scratch() as connection:
                exported = (
                    connection.sql(f"SELECT CAST(NULL AS {kind}) AS v").to_arrow_table().schema.field(0)
                )
            return exported.with_name(name).with_nullable(nullable)
    known = KINDS.get(str(kind))
    if known is None:
        raise refused(str(kind), path)
    return pa.field(name, known.arrow, nullable, known.metadata)


def _fields(named: Sequence[tuple[str, DuckDBPyType]], path: str) -> list[pa.Field]:
    return [_field(name, child, f"{path}.{name}") for name, child in named]


def _array(name: str, kind: DuckDBPyType, path: str, nullable: bool) -> pa.Field:
    """A fixed-size list, or a list where its items have no fixed size or need an extension type."""
    item, size = _field("item", _child(kind), f"{path}.item"), dict(children(kind))["size"]
    kinds = (at.is_string, at.is_binary, at.is_list, at.is_map, at.is_null)
    if item.metadata is None and not any(is_kind(item.type) for is_kind in kinds):
        return pa.field(name, pa.list_(item, size), nullable)
    return pa.field(name, pa.list_(item), nullable, opaque(f"array({size})"))


def _child(kind: DuckDBPyType) -> DuckDBPyType:
    child: DuckDBPyType = dict(children(kind))["child"]
    return child
