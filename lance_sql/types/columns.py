"""The columns of a dataset for columns of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError, UnsupportedTypeError

from lance_sql.types.kinds import KINDS, refused

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

#: Deeper types cannot be stored.
_MAX_DEPTH: Final = 64


def column(name: str, kind: DuckDBPyType, nullable: bool = True) -> pa.Field:
    """The column of a dataset for values of a DuckDB type.

    UnsupportedFeatureError for a type whose values would be read back as another type.
    """
    return _field(name, kind, name, nullable)


def children(kind: DuckDBPyType) -> list[tuple[str, Any]]:
    """The names and types inside a nested type, and the numbers among its parameters."""
    return list(kind.children)


def walk(kind: DuckDBPyType) -> Iterator[DuckDBPyType]:
    """A type and all types inside it."""
    yield kind
    if kind.id in NESTED:
        for _, child in children(kind):
            if not isinstance(child, int):
                yield from walk(child)


#: What DuckDB calls types that contain others.
NESTED: Final = ("list", "array", "struct", "tuple", "map", "union")


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
        case "list":
            return pa.field(name, pa.list_(_field("item", _child(kind), f"{path}.item")), nullable)
        case "array":
            item = _field("item", _child(kind), f"{path}.item")
            _refuse_extensions(item, path)
            return pa.field(name, pa.list_(item, dict(children(kind))["size"]), nullable)
        case "struct":
            parts = [_field(part, child, f"{path}.{part}") for part, child in children(kind)]
            return pa.field(name, pa.struct(parts), nullable)
        case "map":
            inner = dict(children(kind))
            key = _field("key", inner["key"], f"{path}.key", nullable=False)
            return pa.field(name, pa.map_(key, _field("value", inner["value"], f"{path}.value")), nullable)
    called = "ENUM" if kind.id == "enum" else kind.id.upper() if kind.id in NESTED else str(kind)
    known = KINDS.get(called)
    if known is None or known.arrow is None:
        raise refused(called, path)
    return pa.field(name, known.arrow, nullable, known.metadata)


def _child(kind: DuckDBPyType) -> DuckDBPyType:
    found: DuckDBPyType = dict(children(kind))["child"]
    return found


def _refuse_extensions(item: pa.Field, path: str) -> None:
    """The items of fixed-size lists have no field in a dataset that could name their type."""
    if item.metadata is not None:
        raise UnsupportedFeatureError(
            "The items of an array cannot have a type that Arrow lacks",
            column=path,
            remedy="Use a list instead: type[], not type[n]",
        )


def columns(names: Sequence[str], kinds: Sequence[DuckDBPyType]) -> pa.Schema:
    """The columns of a dataset for the rows of a query."""
    return pa.schema([column(name, kind) for name, kind in zip(names, kinds, strict=True)])
