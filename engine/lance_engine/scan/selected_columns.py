"""The schema of the columns that a scan returns, and the size of its rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lance_engine.errors import InvalidArgumentError, UnsupportedTypeError
from lance_engine.expr.value_types import is_text
from lance_engine.lru_cache import LruCache
from lance_engine.scan.code_columns import CodeColumn
from lance_engine.scan.paths import arrow_field, field_path, is_read_alone
from lance_engine.scan.width import estimated_row_bytes
from lance_engine.schema_tree import Field
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.scan.layout import Names
    from lance_engine.schema_tree import Schema
    from lance_engine.table.snapshot import Snapshot

    Selections = LruCache[tuple[Names, frozenset[str]], tuple[pa.Schema, int]]

#: Number of selections that are kept for each schema, which versions usually share.
_CACHED_SELECTIONS: Final = 64
_selected: WeakIdentityDict[Schema, Selections] = WeakIdentityDict()


def selected_columns(snapshot: Snapshot, names: Names, coded: frozenset[str]) -> tuple[pa.Schema, int]:
    """The schema of some columns, and the approximate size of a row in bytes."""
    for name in names:
        if not isinstance(name, (str, Field, CodeColumn)):
            raise InvalidArgumentError(f"columns must be names of columns, but one is {name!r}")
    if any(isinstance(name, CodeColumn) for name in names):
        # Versions share their schema, but not dictionary codes.
        return _with_width(snapshot, names, coded)
    kept = _selected.computed(snapshot.schema, partial(LruCache, _CACHED_SELECTIONS))
    return kept.computed((names, coded), partial(_with_width, snapshot, names, coded))


def _with_width(snapshot: Snapshot, names: Names, coded: frozenset[str]) -> tuple[pa.Schema, int]:
    schema = projected_schema(snapshot, names, coded)
    return schema, max(1, estimated_row_bytes(schema))


def projected_schema(
    snapshot: Snapshot, names: Sequence[str | Field | CodeColumn], coded: Collection[str] = ()
) -> pa.Schema:
    """The Arrow schema of some columns, including system columns; ColumnNotFoundError for unknown ones.

    Columns in `coded`, which must be strings, get a dictionary type.
    """
    fields = [
        arrow_field(snapshot.schema, name) if isinstance(name, str) else name.to_arrow() for name in names
    ]
    for index, field in enumerate(fields):
        if field.name in coded:
            path = field_path(snapshot.schema, field.name)
            is_plain = len(path) == 1 or is_read_alone(path)
            if not is_plain or not is_text(field.type) or path[-1].is_json:
                raise UnsupportedTypeError("Only strings can be read as dictionaries", column=field.name)
            fields[index] = field.with_type(pa.dictionary(pa.int32(), field.type))
    return pa.schema(fields)
