"""The fragments that the indices of a version still cover after an operation.

An index entry refers to a row by its stable row id or by its address. Moved rows are no longer covered by
indices with addresses. Indices with row ids still cover them, unless their values changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyroaring import BitMap

from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment, substitute_indices, with_coverage
from lance_engine.format.operations import DataReplacement, Rewrite, Update
from lance_engine.format.row_ids import count_row_ids
from lance_engine.schema_tree import Schema

_ROW_ID_KINDS: Final = frozenset({"bitmap", "labellist", "ngram", "inverted", "vector"})


def uses_row_ids(segment: IndexSegment) -> bool:
    """Whether the entries are row ids, so that they stay valid with stable row ids (format 7.2)."""
    kind = segment.kind.lower()
    # B-trees contain row addresses since version 1.
    return kind in _ROW_ID_KINDS or (kind == "btree" and not segment.index_version)


def after_update(section: bytes, operation: Update, new_ids: Iterable[int], *, stable: bool) -> bytes:
    """The index section after rows were moved to new fragments with the ids `new_ids`."""
    if not stable:
        return section
    sources = BitMap([fragment.id for fragment in operation.updated_fragments])
    sources.update(operation.removed_fragment_ids)
    # No index contains the values of new rows.
    numbered = zip(operation.new_fragments, new_ids, strict=True)
    moved = BitMap([number for fragment, number in numbered if _only_moved(fragment)])
    modified = set(operation.fields_modified)

    def change(segment: IndexSegment) -> BitMap | None:
        covered = segment.fragment_ids or BitMap()
        if not uses_row_ids(segment) or modified.intersection(segment.fields) or not sources <= covered:
            return None
        return covered | moved

    return with_coverage(section, change) if moved else section


def after_rewrite(section: bytes, operation: Rewrite, *, stable: bool) -> bytes:
    """The index section after the rows of some fragments were rewritten unchanged."""
    old = BitMap(fragment.id for group in operation.groups for fragment in group.old_fragments)

    def change(segment: IndexSegment) -> BitMap:
        covered = segment.fragment_ids or BitMap()
        kept = covered - old
        if stable and uses_row_ids(segment):
            for group in operation.groups:
                if all(fragment.id in covered for fragment in group.old_fragments):
                    kept.update(fragment.id for fragment in group.new_fragments)
        return kept

    section = with_coverage(section, change)
    return substitute_indices(section, {index.old: index.new for index in operation.indices})


def after_replacement(section: bytes, operation: DataReplacement, schema: Schema) -> bytes:
    """The index section after columns of some fragments were updated in place."""
    # An index may be on a list, while files name the items only: all fields of a column count.
    columns = {field.id: {part.id for part in top.walk()} for top in schema.fields for field in top.walk()}
    changed = [
        (number, set().union(*(columns.get(field, ()) for field in file.fields)))
        for number, file in operation.files
    ]

    def change(segment: IndexSegment) -> BitMap:
        replaced = BitMap([number for number, fields in changed if not fields.isdisjoint(segment.fields)])
        return (segment.fragment_ids or BitMap()) - replaced

    return with_coverage(section, change)


def _only_moved(fragment: Fragment) -> bool:
    return (
        fragment.row_ids is not None
        and count_row_ids(fragment.row_ids, fragment.physical_rows) == fragment.physical_rows
    )
