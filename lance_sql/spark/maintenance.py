"""Operations that run as Spark tasks: planned on the driver, and committed there as one version.

Each one has the same result as the operation of the same name on one machine: the same rows in the same
order, with the same stable row ids. Tasks read and write data and columns. The driver only handles row
addresses (8 bytes for each row that is deleted, changed or merged), deletion files, and the updates of
indices for rows that compaction moves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
from lance_engine.base import ProgressOption, Reporter, public
from lance_engine.errors import InvalidArgumentError
from lance_engine.index import VECTOR_KINDS as VECTOR_KINDS
from lance_engine.index import CoveringSegment, RowFinderKind, SegmentFiles, vector_options
from lance_engine.operations import (
    DELETED_SHARE,
    TARGET_BYTES,
    TARGET_ROWS,
    Rewritten,
    build_segment,
    build_texts,
    build_vectors,
    chosen_text_options,
    commit_change,
    commit_moved,
    commit_rewrite,
    create_inverted_index,
    delete_rows,
    index_target,
    joined,
    live_offsets,
    matching_addresses,
    plan_compaction,
    redo_on_conflict,
    replaced_segments,
    rewrite_options,
    train_encoder,
    write_options,
    write_updated,
)
from lance_engine.operations import TEXT_KINDS as TEXT_KINDS
from lance_engine.scan import ScanSplit, scan_rows
from lance_engine.search import text_column, vector_column
from lance_engine.table import (
    CreateIndex,
    Fragment,
    IndexSegment,
    Snapshot,
    U64Array,
    fragment_from_bytes,
    fragment_to_bytes,
)
from lance_engine.write import write_fragments
from pyspark.sql import SparkSession

from lance_sql.dataset import Dataset
from lance_sql.spark.cluster import run_tasks, tagged_files
from lance_sql.spark.options import Options
from lance_sql.spark.partitions import plan_splits
from lance_sql.spark.tables import option_texts

#: Maximum number of segments of an index; more make searches slower.
MAX_SEGMENTS: Final = 8


@public
def compact(
    spark: SparkSession,
    path: str | PathLike[str],
    *,
    target_rows: int = TARGET_ROWS,
    target_bytes: int = TARGET_BYTES,
    deleted_share: float = DELETED_SHARE,
    progress: ProgressOption = None,
    **location: Any,
) -> Dataset:
    """Merge small fragments and remove deleted rows, as `Dataset.compact`; each task writes one fragment.

    `target_rows`, `target_bytes` and `deleted_share` are those of `Dataset.compact`.
    `location` is ``branch`` and ``storage_options``.
    """
    options = _options(path, location)

    def once(snapshot: Snapshot) -> Snapshot:
        groups = plan_compaction(snapshot, target_rows, deleted_share, target_bytes)
        if not groups:
            return snapshot
        reporter = Reporter(progress)
        at = _pinned(options, snapshot)
        partitions = [
            (number, partition)
            for number, group in enumerate(groups)
            for partition in _partitions(snapshot, group, target_rows)
        ]
        rows = [sum(split.stop - split.start for split in partition) for _, partition in partitions]
        with tagged_files(snapshot.store) as tag:

            def work(splits: list[ScanSplit]) -> list[bytes]:
                here = at.open().snapshot
                limits = dataclasses.replace(rewrite_options(here, target_rows, target_bytes), file_tag=tag)
                batches = scan_rows(here, here.schema.names, splits=splits).to_batches()
                return _packed(write_fragments(here.store, here.schema, batches, limits))

            written = run_tasks(
                spark, [partition for _, partition in partitions], work, reporter, "compacting", rows
            )
            rewritten: list[Rewritten] = [(group, []) for group in groups]
            for (number, _), fragments in zip(partitions, written, strict=True):
                rewritten[number][1].extend(_unpacked(fragments))
            return commit_rewrite(snapshot, rewritten, reporter)

    return _done(options, once)


@public
def build_index(
    spark: SparkSession,
    path: str | PathLike[str],
    column: str,
    kind: str = "btree",
    *,
    name: str | None = None,
    replace: bool = False,
    progress: ProgressOption = None,
    location: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Dataset:
    """Build an index, as `Dataset.create_index` does; each task builds it for some of the fragments.

    `kind`, `name`, `replace` and the options `settings` are those of `Dataset.create_index`.
    The index then has one segment per task, at most `MAX_SEGMENTS`, but indices of zones are merged into one
    segment. The driver trains a vector index on a sample, and all segments share its partitions and codes.
    `location` is ``branch`` and ``storage_options``.
    """
    options = _options(path, location or {})
    index_name = name or f"{column}_idx"
    if kind.upper() in VECTOR_KINDS:
        return _build_vector_index(spark, options, column, kind, index_name, replace, progress, settings)
    if kind.upper() in TEXT_KINDS:
        return _build_text_index(spark, options, column, index_name, replace, progress, settings)

    def once(snapshot: Snapshot) -> Snapshot:
        target = index_target(snapshot, column, kind, index_name, **settings)
        existing = replaced_segments(snapshot, index_name, replace)
        reporter = Reporter(progress)
        at = _pinned(options, snapshot)
        shares = _shares(snapshot, MAX_SEGMENTS)

        def work(ids: list[int]) -> tuple[IndexSegment, list[str]]:
            here = at.open().snapshot
            wanted = index_target(here, column, kind, index_name, **settings)
            return build_segment(here, wanted, [here.fragment(number) for number in ids], (), Reporter(None))

        rows = [sum(snapshot.live_rows(snapshot.fragment(number)) for number in ids) for ids in shares]
        built = run_tasks(spark, shares, work, reporter, "building the index", rows)
        paths = [path for _, files in built for path in files]
        segments = tuple(segment for segment, _ in built)
        if len(segments) != 1 and not (segments and isinstance(target.kind, RowFinderKind)):
            covering = [
                CoveringSegment(segment, segment.fragment_ids, SegmentFiles(snapshot, segment))
                for segment in segments
                if segment.fragment_ids is not None
            ]
            segment, files = build_segment(snapshot, target, (), covering, reporter)
            for unused in paths:
                snapshot.store.delete(unused)
            segments, paths = (segment,), files
        return commit_change(snapshot, CreateIndex(segments, existing), paths)

    return _done(options, once)


def _build_vector_index(
    spark: SparkSession,
    options: Options,
    column: str,
    kind: str,
    name: str,
    replace: bool,
    progress: ProgressOption,
    settings: Mapping[str, Any],
) -> Dataset:
    def once(snapshot: Snapshot) -> Snapshot:
        existing = replaced_segments(snapshot, name, replace)
        reporter = Reporter(progress)
        place = vector_column(snapshot, column)
        vector = snapshot.schema.field(column).to_arrow().type
        chosen = vector_options(kind, vector, snapshot.num_rows, settings)
        encoder = train_encoder(snapshot, place, chosen, reporter)

        def build(here: Snapshot, fragments: list[Fragment]) -> tuple[IndexSegment, list[str]]:
            return build_vectors(here, name, vector_column(here, column), encoder, fragments, Reporter(None))

        return _with_segments(spark, options, snapshot, build, existing, reporter)

    return _done(options, once)


def _build_text_index(
    spark: SparkSession,
    options: Options,
    column: str,
    name: str,
    replace: bool,
    progress: ProgressOption,
    settings: Mapping[str, Any],
) -> Dataset:
    def once(snapshot: Snapshot) -> Snapshot:
        existing = replaced_segments(snapshot, name, replace)
        chosen = chosen_text_options(text_column(snapshot, column), settings)
        if not snapshot.fragments:  # an index has a segment even if there are no rows
            return create_inverted_index(snapshot, column, name, settings, existing, Reporter(progress))

        def build(here: Snapshot, fragments: list[Fragment]) -> tuple[IndexSegment, list[str]]:
            return build_texts(here, name, text_column(here, column), chosen, fragments, Reporter(None))

        return _with_segments(spark, options, snapshot, build, existing, Reporter(progress))

    return _done(options, once)


def _with_segments(
    spark: SparkSession,
    options: Options,
    snapshot: Snapshot,
    build: Callable[[Snapshot, list[Fragment]], tuple[IndexSegment, list[str]]],
    replaced: tuple[IndexSegment, ...],
    reporter: Reporter,
) -> Snapshot:
    """Commit an index with one segment per task, instead of the segments `replaced`."""
    at = _pinned(options, snapshot)
    shares = _shares(snapshot, MAX_SEGMENTS)

    def work(ids: list[int]) -> tuple[IndexSegment, list[str]]:
        here = at.open().snapshot
        return build(here, [here.fragment(number) for number in ids])

    rows = [sum(snapshot.live_rows(snapshot.fragment(number)) for number in ids) for ids in shares]
    built = run_tasks(spark, shares, work, reporter, "building the index", rows)
    paths = [path for _, files in built for path in files]
    return commit_change(snapshot, CreateIndex(tuple(segment for segment, _ in built), replaced), paths)


@public
def delete(
    spark: SparkSession,
    path: str | PathLike[str],
    where: str,
    *,
    progress: ProgressOption = None,
    **location: Any,
) -> Dataset:
    """Delete the rows that pass the filter; tasks find them."""
    options = _options(path, location)

    def once(snapshot: Snapshot) -> Snapshot:
        at = _pinned(options, snapshot)
        shares, rows = _split(at, where)

        def work(splits: list[ScanSplit]) -> U64Array:
            return matching_addresses(at.open().snapshot, where, splits)

        addresses = run_tasks(spark, shares, work, Reporter(progress), "finding rows", rows)
        return delete_rows(snapshot, joined(addresses), where)

    return _done(options, once)


@public
def update(
    spark: SparkSession,
    path: str | PathLike[str],
    values: Mapping[str, str],
    where: str | None = None,
    *,
    progress: ProgressOption = None,
    **location: Any,
) -> Dataset:
    """Update columns of the rows that pass the filter, with SQL expressions over the columns of the row.

    `values` maps columns to these expressions.
    """
    if not values:
        raise InvalidArgumentError("update needs at least one column")
    options = _options(path, location)
    texts = dict(values)

    def once(snapshot: Snapshot) -> Snapshot:
        at = _pinned(options, snapshot)
        shares, rows = _split(at, where)
        with tagged_files(snapshot.store) as tag:

            def work(splits: list[ScanSplit]) -> tuple[U64Array, list[bytes]]:
                here = at.open().snapshot
                limits = dataclasses.replace(write_options(here), file_tag=tag)
                compiler = Dataset._compiler
                moved, new = write_updated(here, texts, where, compiler, limits, Reporter(None), splits)
                return moved, _packed(new)

            done = run_tasks(spark, shares, work, Reporter(progress), "updating rows", rows)
            fragments = [fragment for _, new in done for fragment in _unpacked(new)]
            return commit_moved(snapshot, texts, [moved for moved, _ in done], fragments)

    return _done(options, once)


def _options(path: str | PathLike[str], location: Mapping[str, Any]) -> Options:
    unknown = location.keys() - {"branch", "storage_options"}
    if unknown:
        raise InvalidArgumentError(f"Unexpected argument '{min(unknown)}' for this operation")
    return Options.parse({**option_texts(location), "path": str(path)})


def _pinned(options: Options, snapshot: Snapshot) -> Options:
    return dataclasses.replace(options, version=snapshot.version)


def _done(options: Options, once: Any) -> Dataset:
    return Dataset(redo_on_conflict(options.open().snapshot, once))


def _split(options: Options, where: str | None) -> tuple[list[list[ScanSplit]], list[int]]:
    """The ranges for each task, without those that cannot pass, and their row counts."""
    shares = plan_splits(options.open(), dataclasses.replace(options, filter=where)).partitions
    return shares, [sum(split.stop - split.start for split in splits) for splits in shares]


def _partitions(snapshot: Snapshot, group: Sequence[Fragment], target_rows: int) -> list[list[ScanSplit]]:
    """Ranges with `target_rows` live rows each, in order; the last one may be smaller."""
    partitions: list[list[ScanSplit]] = [[]]
    room = target_rows
    for fragment in group:
        live = live_offsets(snapshot, fragment)
        start, done = 0, 0
        while done < len(live):
            if not room:
                partitions.append([])
                room = target_rows
            taken = min(room, len(live) - done)
            done += taken
            stop = fragment.physical_rows if done == len(live) else int(live[done])
            partitions[-1].append(ScanSplit(fragment.id, start, stop))
            start, room = stop, room - taken
    return [partition for partition in partitions if partition]


def _shares(snapshot: Snapshot, count: int) -> list[list[int]]:
    """The ids of the fragments, divided into up to `count` groups with similar numbers of rows."""
    if not snapshot.fragments:
        return []
    rows = np.cumsum([fragment.physical_rows for fragment in snapshot.fragments])
    owners = np.minimum((rows - 1) * count // max(1, int(rows[-1])), count - 1)
    ids = np.array([fragment.id for fragment in snapshot.fragments])
    return [ids[owners == owner].tolist() for owner in np.unique(owners)]


def _packed(fragments: Sequence[Fragment]) -> list[bytes]:
    return [fragment_to_bytes(fragment) for fragment in fragments]


def _unpacked(fragments: Sequence[bytes]) -> list[Fragment]:
    return [fragment_from_bytes(data) for data in fragments]
