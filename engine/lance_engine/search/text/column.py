"""Text columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.arrow_values import stored
from lance_engine.errors import InvalidSearchError
from lance_engine.index.inverted.analysis import Analysis, is_text
from lance_engine.search.column import require_name
from lance_engine.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column whose values are strings, lists of strings, or JSON documents."""

    name: str
    parts: tuple[str, ...]
    field_id: int
    is_json: bool

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The column in a batch whose first column contains it."""
        values = batch.column(0)
        if len(self.parts) > 1:
            values = pc.struct_field(values, list(self.parts[1:]))
        return stored(values)

    def cut_by(self, analysis: Analysis) -> Analysis:
        """The same analysis, adapted to the type of the column."""
        return replace(analysis, lance_tokenizer="json" if self.is_json else "text")


def holds_texts(snapshot: Snapshot, name: str) -> bool:
    """Whether the values of a column are strings, lists of strings, or JSON documents."""
    field = snapshot.schema.field(name)
    return field.is_json or is_text(field.to_arrow().type)


def text_column(snapshot: Snapshot, name: str) -> TextColumn:
    """The column of this name; InvalidSearchError if its values are not texts."""
    require_name(name)
    field = snapshot.schema.field(name)
    if not holds_texts(snapshot, name):
        raise InvalidSearchError(
            f"The column has type {field.to_arrow().type}, expected texts",
            remedy="Texts are strings, lists of strings or JSON documents",
            path=snapshot.uri,
            version=snapshot.version,
            column=name,
        )
    parts = (name,) if name in snapshot.schema.names else tuple(name.split("."))
    return TextColumn(name, parts, field.id, field.is_json)
