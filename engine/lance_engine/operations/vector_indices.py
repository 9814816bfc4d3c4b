"""Creating and extending vector indices, and moving them with their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyroaring import BitMap

from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.format.operations import CreateIndex
from lance_engine.index.searched import Covering
from lance_engine.index.vector.encoder import Encoder
from lance_engine.index.vector.kind import VECTORS
from lance_engine.index.vector.metadata import described_index
from lance_engine.index.vector.options import KINDS, for_rows, vector_options
from lance_engine.index.vector.reencode import encoder_of, same_codes, stored_rows
from lance_engine.index.vector.segment import VectorSegment, is_untrained
from lance_engine.operations.changes import commit_change
from lance_engine.operations.index_build import Relocate
from lance_engine.operations.searched_indices import SearchedIndices
from lance_engine.operations.vector_build import build_vectors, train_encoder
from lance_engine.progress import Reporter
from lance_engine.search.column import VectorColumn, vector_column
from lance_engine.table.snapshot import Snapshot


def create_vector_index(
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str,
    options: Mapping[str, Any],
    removed: tuple[IndexSegment, ...],
    reporter: Reporter,
) -> Snapshot:
    """Build an index over all rows of this version."""
    place = vector_column(snapshot, column)
    vector = snapshot.schema.field(column).to_arrow().type
    chosen = vector_options(kind, vector, snapshot.num_rows, options)
    encoder = train_encoder(snapshot, place, chosen, reporter)
    segment, paths = build_vectors(snapshot, name, place, encoder, list(snapshot.fragments), reporter)
    return commit_change(snapshot, CreateIndex((segment,), removed), paths)


class _VectorWriter:
    """Writes segments with the partitions and codes of an existing one."""

    def __init__(
        self, snapshot: Snapshot, name: str, place: VectorColumn, encoder: Encoder, reporter: Reporter
    ) -> None:
        self._snapshot, self._name, self._place, self._reporter = snapshot, name, place, reporter
        self._encoder = encoder

    @property
    def takes_rows(self) -> bool:
        return self._encoder.options.dim == self._place.dim and not self._place.is_multi

    def retrained(self) -> _VectorWriter:
        options = for_rows(self._encoder.options, self._snapshot.num_rows)
        encoder = train_encoder(self._snapshot, self._place, options, self._reporter)
        return _VectorWriter(self._snapshot, self._name, self._place, encoder, self._reporter)

    def carried(self, opened: VectorSegment, fragments: BitMap) -> BitMap:
        return fragments if same_codes(opened, self._encoder) else BitMap()

    def build(
        self,
        fragments: Sequence[Fragment],
        carried: Sequence[tuple[VectorSegment, Relocate]] = (),
        carried_fragments: BitMap | None = None,
    ) -> tuple[IndexSegment, list[str]]:
        stored = [(stored_rows(opened), relocate) for opened, relocate in carried]
        return build_vectors(
            self._snapshot, self._name, self._place, self._encoder, fragments, self._reporter,
            stored, carried_fragments,
        )  # fmt: skip


def _writer(
    snapshot: Snapshot, covering: Covering[VectorSegment], reporter: Reporter
) -> _VectorWriter | None:
    path = snapshot.schema.paths_by_id().get(covering.segment.fields[0])
    if path is None:
        return None
    place = vector_column(snapshot, path)
    opened, details = covering.open(), covering.segment.details
    if opened is not None:
        encoder = encoder_of(opened, details, place.value_type)
    else:
        encoder = _first_encoder(snapshot, covering, place, reporter)
    if encoder is None:
        return None
    return _VectorWriter(snapshot, covering.segment.name, place, encoder, reporter)


def _first_encoder(
    snapshot: Snapshot, covering: Covering[VectorSegment], place: VectorColumn, reporter: Reporter
) -> Encoder | None:
    """The encoder of an index that was only described so far; None if it is not, or not of a written kind."""
    described = described_index(covering.segment.details)
    if described is None or described[0] not in KINDS or place.is_multi or not is_untrained(covering.files):
        return None
    kind, options = described
    vector = snapshot.schema.field(place.name).to_arrow().type
    chosen = vector_options(kind, vector, snapshot.num_rows, options)
    return train_encoder(snapshot, place, chosen, reporter)


VECTOR_INDICES: Final = SearchedIndices(VECTORS, _writer)
