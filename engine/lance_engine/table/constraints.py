"""The constraints of a table, as the metadata of its schema describes them: keys, and CHECK conditions.

The primary key is that of the format, which names its columns only: others read it, and do not enforce it.
What is added here says that it holds, and describes the UNIQUE keys and the CHECK conditions of the table.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from lance_engine.format.schema import PRIMARY_KEY, PRIMARY_KEY_POSITION, without_primary_key
from lance_engine.schema_tree import Field, Schema

#: Field metadata of the columns of an enforced primary key: their number.
ENFORCED: Final = "lance-sql:primary-key"
#: Field metadata: the UNIQUE keys with this column, as JSON of name -> [position from 1, number of columns].
UNIQUE: Final = "lance-sql:unique"
#: Metadata of the schema: the CHECK conditions, as JSON of name -> SQL text.
CHECKS: Final = "lance-sql:checks"
#: All metadata keys of columns that describe keys.
COLUMN_ENTRIES: Final = (PRIMARY_KEY, PRIMARY_KEY_POSITION, ENFORCED, UNIQUE)


@dataclasses.dataclass(frozen=True)
class Key:
    """Columns whose values occur once, in this order; `fields` are the ids of these columns.

    Rows with a null among them are not compared. Columns of a primary key have no nulls.
    """

    name: str
    columns: tuple[str, ...]
    fields: tuple[int, ...]
    is_primary: bool = False
    is_enforced: bool = True

    @property
    def kind(self) -> str:
        return "PRIMARY KEY" if self.is_primary else "UNIQUE"


@dataclasses.dataclass(frozen=True)
class Check:
    """A condition that is not false for any row."""

    name: str
    condition: str


@dataclasses.dataclass(frozen=True)
class Constraints:
    """The keys, the primary key first, and the conditions of a table."""

    keys: tuple[Key, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of all of them."""
        return [*(key.name for key in self.keys), *(check.name for check in self.checks)]

    @property
    def enforced(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if key.is_enforced)


NOTHING: Final = Constraints()


def has_key_within(schema: Schema, columns: Iterable[str]) -> bool:
    """Whether an enforced key consists of some of the columns: no two rows are equal in all of them."""
    given = set(columns)
    return any(given.issuperset(key.columns) for key in constraints_of(schema).enforced)


def constraints_of(schema: Schema) -> Constraints:
    """The constraints of a table. A key that has lost a column to another writer is none any more."""
    has_keys = any(not field.metadata.keys().isdisjoint(COLUMN_ENTRIES) for field in schema.fields)
    if not has_keys and CHECKS not in schema.metadata:
        return NOTHING
    return Constraints(tuple(_keys(schema)) if has_keys else (), tuple(_checks(schema.metadata)))


def primary_key_name(columns: Iterable[str]) -> str:
    """The name of a primary key, as DuckDB forms it."""
    return f"{'_'.join(columns)}_pkey"


def with_key(schema: Schema, key: Key) -> Schema:
    """The schema with another key; the columns of a primary key become NOT NULL."""
    count = len(key.columns)
    place = {name: number for number, name in enumerate(key.columns, 1)}

    def changed(field: Field) -> Field:
        position = place.get(field.name)
        if position is None:
            return field
        metadata = dict(field.metadata)
        if not key.is_primary:
            metadata[UNIQUE] = json.dumps({**_places(field.metadata), key.name: [position, count]})
            return dataclasses.replace(field, metadata=metadata)
        metadata |= {PRIMARY_KEY: "true", PRIMARY_KEY_POSITION: str(position)}
        if key.is_enforced:
            metadata[ENFORCED] = str(count)
        return dataclasses.replace(field, metadata=metadata, nullable=False)

    return _mapped(schema, changed)


def without_key(schema: Schema, key: Key) -> Schema:
    """The schema without a key; its columns may remain NOT NULL."""

    def changed(field: Field) -> Field:
        if field.name not in key.columns:
            return field
        metadata = dict(field.metadata)
        if key.is_primary:
            metadata.pop(ENFORCED, None)
            return without_primary_key(dataclasses.replace(field, metadata=metadata))
        places = _places(field.metadata)
        places.pop(key.name, None)
        metadata.pop(UNIQUE, None)
        if places:
            metadata[UNIQUE] = json.dumps(places)
        return dataclasses.replace(field, metadata=metadata)

    return _mapped(schema, changed)


def with_checks(schema: Schema, checks: Iterable[Check]) -> Schema:
    """The schema with these CHECK conditions in place of those that it has."""
    metadata = {key: value for key, value in schema.metadata.items() if key != CHECKS}
    texts = {check.name: check.condition for check in checks}
    return Schema(schema.fields, {**metadata, CHECKS: json.dumps(texts)} if texts else metadata)


def _mapped(schema: Schema, change: Callable[[Field], Field]) -> Schema:
    return Schema(tuple(map(change, schema.fields)), schema.metadata)


def _keys(schema: Schema) -> Iterable[Key]:
    marked = [field for field in schema.fields if field.metadata.get(PRIMARY_KEY) == "true"]
    if marked:
        # Columns without a position, which old releases wrote, come in the order of the table.
        marked.sort(key=lambda field: _number(field.metadata.get(PRIMARY_KEY_POSITION)))
        columns = tuple(field.name for field in marked)
        enforced = {field.metadata.get(ENFORCED) for field in marked} == {str(len(marked))}
        fields = tuple(field.id for field in marked)
        yield Key(primary_key_name(columns), columns, fields, is_primary=True, is_enforced=enforced)
    by_name: dict[str, dict[int, Field]] = {}
    counts: dict[str, int] = {}
    for field in schema.fields:
        for name, (position, count) in _places(field.metadata).items():
            by_name.setdefault(name, {})[position] = field
            counts[name] = count
    for name, parts in by_name.items():
        if sorted(parts) == list(range(1, counts[name] + 1)):
            ordered = [parts[position] for position in sorted(parts)]
            yield Key(name, tuple(one.name for one in ordered), tuple(one.id for one in ordered))


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0


def _places(metadata: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Name -> position and number of columns, of the UNIQUE keys with a column; what is damaged is none."""
    places = _object(metadata.get(UNIQUE))
    return {
        name: (place[0], place[1])
        for name, place in places.items()
        if isinstance(place, list) and len(place) == 2 and all(type(number) is int for number in place)
    }


def _checks(metadata: Mapping[str, str]) -> Iterable[Check]:
    for name, condition in _object(metadata.get(CHECKS)).items():
        if isinstance(condition, str):
            yield Check(name, condition)


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
