"""Creates, drops and extends the indices of a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from lance_engine.errors import (
    IndexExistsError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.format.operations import CreateIndex
from lance_engine.index.kind import RowFinderKind
from lance_engine.index.listing import all_segments, index_not_found
from lance_engine.index.registry import KINDS, kind_of
from lance_engine.index.segments import (
    CoveringSegment,
    TableIndex,
    column_paths,
    holds_addresses,
    known_indices,
)
from lance_engine.index.vector.options import KINDS as VECTOR_KINDS
from lance_engine.operations.changes import commit_change
from lance_engine.operations.index_build import Target, build_segment
from lance_engine.operations.index_remap import is_readable
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.operations.searched_kinds import SEARCHED
from lance_engine.operations.text_indices import KINDS as TEXT_KINDS
from lance_engine.operations.text_indices import create_inverted_index
from lance_engine.operations.vector_indices import create_vector_index
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.table.snapshot import Snapshot

#: The kinds that can be built: for filters, for vectors, for texts.
INDEX_KINDS: Final = (*KINDS, *VECTOR_KINDS, TEXT_KINDS[0])

# New fragments get a separate segment while they have less than this share of the indexed rows, and an index
# has no more segments than this. Otherwise everything is merged into one.
_DELTA_SHARE: Final = 1 / 4
_MAX_SEGMENTS: Final = 8


def create_index(
    snapshot: Snapshot,
    column: str,
    kind: str = "btree",
    *,
    name: str | None = None,
    replace: bool = False,
    train: bool = True,
    progress: ProgressOption = None,
    **options: Any,
) -> Snapshot:
    """Build an index on a column, or on a field of a struct, such as ``a.b``, over all rows of this version.

    `kind` is one of `INDEX_KINDS`. `name` is ``<column>_idx`` by default; an existing index of this name is
    an error unless `replace` is set. Without `train`, it covers no rows until `optimize_indices`.
    UnsupportedTypeError if the index does not support the type.
    """
    index_name = name or f"{column}_idx"
    if "index_type" in options:  # what pylance and LanceDB call it
        raise InvalidArgumentError("Unknown option 'index_type'", remedy="Did you mean 'kind'?")
    if not train and kind.lower() not in KINDS:
        raise UnsupportedFeatureError(
            f"An index of the type {kind} must be trained when it is created", remedy="Leave out train=False"
        )

    def once(snapshot: Snapshot) -> Snapshot:
        if kind.upper() in VECTOR_KINDS:
            replaced = replaced_segments(snapshot, index_name, replace)
            reporter = Reporter(progress)
            return create_vector_index(snapshot, column, kind, index_name, options, replaced, reporter)
        if kind.upper() in TEXT_KINDS:
            replaced = replaced_segments(snapshot, index_name, replace)
            return create_inverted_index(snapshot, column, index_name, options, replaced, Reporter(progress))
        target = index_target(snapshot, column, kind, index_name, **options)
        existing = replaced_segments(snapshot, index_name, replace)
        covered = list(snapshot.fragments) if train else []
        return _build_and_commit(snapshot, target, covered, (), existing, Reporter(progress))

    return redo_on_conflict(snapshot, once)


def index_target(snapshot: Snapshot, column: str, kind: str, name: str, **options: Any) -> Target:
    """The parameters of an index to build; the errors are those of `create_index`."""
    chosen = KINDS.get(kind.lower())
    if chosen is None:
        raise UnsupportedFeatureError(
            f"Unknown index type '{kind}'",
            remedy="Choose " + ", ".join(INDEX_KINDS),
        )
    unknown = options.keys() - chosen.options.keys()
    if unknown:
        known = ", ".join(chosen.options) or "none"
        raise InvalidArgumentError(
            f"'{min(unknown)}' is not an option of {chosen.name}. Available options: {known}"
        )
    field = snapshot.schema.field(column)
    place = column_paths(snapshot).get(field.id)
    if place is None or field.is_blob or not chosen.supports(place[1]):
        raise UnsupportedTypeError(
            f"Cannot build a {chosen.name} on type {field.logical_type}",
            path=snapshot.uri,
            column=column,
        )
    return Target(name, chosen, field.id, *place, {**chosen.options, **options})


def replaced_segments(snapshot: Snapshot, name: str, replace: bool) -> tuple[IndexSegment, ...]:
    """The segments that a new index of this name replaces; IndexExistsError unless `replace` is set."""
    existing = tuple(segment for segment in all_segments(snapshot) if segment.name == name)
    if existing and not replace:
        raise _exists(snapshot, name)
    return existing


def drop_index(snapshot: Snapshot, name: str) -> Snapshot:
    """Remove an index of any kind; its files are kept for older versions until a cleanup."""

    def once(snapshot: Snapshot) -> Snapshot:
        existing = tuple(segment for segment in all_segments(snapshot) if segment.name == name)
        if not existing:
            raise index_not_found(snapshot, name)
        return commit_change(snapshot, CreateIndex(removed=existing))

    return redo_on_conflict(snapshot, once)


def optimize_indices(
    snapshot: Snapshot,
    names: Sequence[str] | None = None,
    *,
    retrain: bool = False,
    progress: ProgressOption = None,
) -> Snapshot:
    """Extend indices to later fragments, each index in its own commit; with `retrain`, build them again.

    `names` selects indices; IndexNotFoundError if one does not exist. Indices of kinds that cannot be built
    are not changed. Returns `snapshot` itself if all is covered.
    """
    known = {segment.name for segment in all_segments(snapshot)}
    for name in names or ():
        if name not in known:
            raise index_not_found(snapshot, name)
    reporter = Reporter(progress)
    for name in [index.name for index in known_indices(snapshot) if names is None or index.name in names]:

        def once(snapshot: Snapshot, name: str = name) -> Snapshot:
            return _optimize(snapshot, name, reporter, retrain=retrain)

        snapshot = redo_on_conflict(snapshot, once)
    for searched in SEARCHED:
        for index in searched.kind.indices(snapshot):
            if names is None or index.name in names:
                change = searched.rebuild if retrain else searched.optimize
                snapshot = redo_on_conflict(snapshot, partial(change, name=index.name, reporter=reporter))
    return snapshot


def _optimize(snapshot: Snapshot, name: str, reporter: Reporter, *, retrain: bool) -> Snapshot:
    index = find_index(snapshot, name)
    if index is None:
        return snapshot
    all_ = _all_of(snapshot, index)
    is_from_old_release = isinstance(index.kind, RowFinderKind) and not all(
        is_readable(held.segment, index.kind, snapshot) for held in index.segments
    )
    kind: Any = index.kind
    options = dict(kind.options)
    if index.segments and not is_from_old_release:
        options |= kind.built_with(index.segments[0].open(kind))
    target = Target(name, index.kind, all_[0].fields[0], index.parts, index.column_type, options)
    if is_from_old_release or retrain:
        return _build_and_commit(snapshot, target, snapshot.fragments, (), all_, reporter)
    covered = index.covered
    missing = [fragment for fragment in snapshot.fragments if fragment.id not in covered]
    if not missing and len(index.segments) <= _MAX_SEGMENTS:
        return snapshot
    rows = sum(snapshot.live_rows(fragment) for fragment in missing)
    is_small = rows < _DELTA_SHARE * snapshot.num_rows
    apart = (
        missing
        and index.segments
        and is_small
        and not any(segment.is_behind for segment in all_)  # it would claim the same fragments
        and isinstance(index.kind, RowFinderKind)
        and _takes_deltas(snapshot, index.kind, index)
    )
    carried: Sequence[CoveringSegment] = () if apart else index.segments
    removed = () if apart else all_
    return _build_and_commit(snapshot, target, missing, carried, removed, reporter)


def _all_of(snapshot: Snapshot, index: TableIndex) -> tuple[IndexSegment, ...]:
    """The segments of an index, including those that no longer cover any fragment."""
    return tuple(
        segment
        for segment in all_segments(snapshot)
        if segment.name == index.name and kind_of(segment.kind) is index.kind
    )


def _takes_deltas(snapshot: Snapshot, kind: RowFinderKind, index: TableIndex) -> bool:
    """Whether new rows may get a separate segment.

    If entries are stable row ids, those of updated rows still find these rows: they must be removed when the
    new rows are covered.
    """
    return len(index.segments) < _MAX_SEGMENTS and all(
        holds_addresses(snapshot, kind, segment.segment) for segment in index.segments
    )


def find_index(snapshot: Snapshot, name: str) -> TableIndex | None:
    """The index of a known kind with this name."""
    return next((index for index in known_indices(snapshot) if index.name == name), None)


def _build_and_commit(
    snapshot: Snapshot,
    target: Target,
    fragments: Sequence[Fragment],
    carried: Sequence[CoveringSegment],
    removed: tuple[IndexSegment, ...],
    reporter: Reporter,
) -> Snapshot:
    segment, paths = build_segment(snapshot, target, fragments, carried, reporter)
    return commit_change(snapshot, CreateIndex((segment,), removed), paths)


def _exists(snapshot: Snapshot, name: str) -> IndexExistsError:
    return IndexExistsError(
        f"Index '{name}' already exists",
        path=snapshot.uri,
        version=snapshot.version,
        remedy="Choose another name, or pass replace=True",
    )
