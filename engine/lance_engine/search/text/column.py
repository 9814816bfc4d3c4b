"""Columns of texts."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.errors import InvalidSearchError
from lance_engine.index.inverted.analysis import is_text
from lance_engine.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column whose values are strings or lists of strings."""

    name: str
    parts: tuple[str, ...]
    field_id: int

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The column in a batch whose first column is the one that holds it."""
        values = batch.column(0)
        return pc.struct_field(values, list(self.parts[1:])) if len(self.parts) > 1 else values


def text_column(snapshot: Snapshot, name: str) -> TextColumn:
    """The column of this name; InvalidSearchError if its values are not texts."""
    field = snapshot.schema.field(name)
    kind = field.to_arrow().type
    if field.is_json or not is_text(kind):
        raise InvalidSearchError(
            f"The column holds {kind}, no texts",
            remedy="Texts are strings or lists of strings",
            path=snapshot.uri,
            version=snapshot.version,
            column=name,
        )
    parts = (name,) if name in snapshot.schema.names else tuple(name.split("."))
    return TextColumn(name, parts, field.id)
