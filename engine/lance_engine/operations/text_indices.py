"""Creating and extending inverted indices, and moving them with their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from pyroaring import BitMap

from lance_engine.errors import InvalidArgumentError, InvalidSearchError
from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.format.operations import CreateIndex
from lance_engine.index.inverted.analysis import Analysis, analysis_of
from lance_engine.index.inverted.kind import INVERTED
from lance_engine.index.inverted.layout import Layout
from lance_engine.index.inverted.segment import TextSegment
from lance_engine.index.searched import Covering
from lance_engine.operations.changes import commit_change
from lance_engine.operations.index_build import Relocate
from lance_engine.operations.searched_indices import SearchedIndices
from lance_engine.operations.text_build import TextOptions, build_texts
from lance_engine.progress import Reporter
from lance_engine.search.text.column import TextColumn, text_column
from lance_engine.table.snapshot import Snapshot

KINDS: Final = ("INVERTED", "FTS")


def create_inverted_index(
    snapshot: Snapshot,
    column: str,
    name: str,
    options: Mapping[str, Any],
    removed: tuple[IndexSegment, ...],
    reporter: Reporter,
) -> Snapshot:
    """Build an index over all rows of this version."""
    place = text_column(snapshot, column)
    chosen = chosen_text_options(place, options)
    segment, paths = build_texts(snapshot, name, place, chosen, list(snapshot.fragments), reporter)
    return commit_change(snapshot, CreateIndex((segment,), removed), paths)


def chosen_text_options(place: TextColumn, options: Mapping[str, Any]) -> TextOptions:
    """The options of an index on a column, whose type restricts the tokenization."""
    chosen = text_options(options)
    return chosen._replace(analysis=place.cut_by(chosen.analysis))


def text_options(options: Mapping[str, Any]) -> TextOptions:
    """The options of an index; TypeError if one is unknown, InvalidSearchError if one is invalid."""
    given = dict(options)
    with_position = given.pop("with_position", False)
    if not isinstance(with_position, bool):
        raise InvalidSearchError(f"with_position must be True or False, not {with_position!r}")
    known = [field.name for field in fields(Analysis) if field.name != "lance_tokenizer"]
    unknown = given.keys() - set(known)
    if unknown:
        raise InvalidArgumentError(
            f"Unknown option '{min(unknown)}' of an inverted index. Choose from "
            + ", ".join(["with_position", *known])
        )
    return TextOptions(analysis_of(given), with_position)


class _TextWriter:
    """Writes segments with the tokenization of an existing one."""

    takes_rows = True

    def __init__(
        self, snapshot: Snapshot, name: str, place: TextColumn, layout: Layout, reporter: Reporter
    ) -> None:
        self._snapshot, self._name, self._place, self._reporter = snapshot, name, place, reporter
        self._options = TextOptions(layout.analysis, layout.with_position)

    def retrained(self) -> _TextWriter:
        return self

    def carried(self, opened: TextSegment, fragments: BitMap) -> BitMap:
        """The segments whose posting lists can be used for a new segment."""
        options = self._options
        if opened.layout.analysis != options.analysis or (options.with_position and not opened.has_positions):
            return BitMap()
        return fragments - opened.deleted_fragments

    def build(
        self,
        fragments: Sequence[Fragment],
        carried: Sequence[tuple[TextSegment, Relocate]] = (),
        carried_fragments: BitMap | None = None,
    ) -> tuple[IndexSegment, list[str]]:
        return build_texts(
            self._snapshot, self._name, self._place, self._options, fragments, self._reporter,
            carried, carried_fragments,
        )  # fmt: skip


def _writer(snapshot: Snapshot, covering: Covering[TextSegment], reporter: Reporter) -> _TextWriter | None:
    opened = covering.open()
    path = snapshot.schema.paths_by_id().get(covering.segment.fields[0])
    try:
        place = None if path is None else text_column(snapshot, path)
    except InvalidSearchError:
        return None
    if opened is None or place is None:
        return None
    return _TextWriter(snapshot, covering.segment.name, place, opened.layout, reporter)


INVERTED_INDICES: Final = SearchedIndices(INVERTED, _writer)
