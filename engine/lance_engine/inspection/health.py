"""What slows a dataset down or wastes space, with the command that fixes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from lance_engine.format.fragment_list import fragment_ids
from lance_engine.format.index_section import IndexSegment, parse_index_section
from lance_engine.operations.compact import plan
from lance_engine.operations.fragment_size import DELETED_SHARE, TARGET_ROWS
from lance_engine.table.snapshot import DATA, Snapshot
from lance_engine.table.versions import list_versions

HEALTH_SCHEMA: Final = pa.schema(
    [
        pa.field("measure", pa.string(), nullable=False),
        pa.field("amount", pa.uint64(), nullable=False),
        pa.field("total", pa.uint64()),
        pa.field("attention", pa.bool_(), nullable=False),
        pa.field("meaning", pa.string(), nullable=False),
        ("command", pa.string()),
    ]
)
# From this number of versions on, listing and cleaning up needs attention.
_MANY_VERSIONS: Final = 100


def health(snapshot: Snapshot, *, target_rows: int = TARGET_ROWS) -> pa.Table:
    """One row per measure: count, total, whether it needs attention, and which command fixes it.

    `command` is null if there is nothing to do. Reads metadata only: the manifest, the deletion files
    without a recorded length, and a list of the files. `target_rows` is the size that fragments should have.
    """
    rows = [
        _small_fragments(snapshot, target_rows),
        _deleted_rows(snapshot),
        *_versions(snapshot),
        *_unused_files(snapshot),
        _incomplete_manifest(snapshot),
        *_indices(snapshot),
    ]
    return pa.Table.from_pylist(rows, schema=HEALTH_SCHEMA)


def _measure(
    measure: str, amount: int, total: int | None, attention: bool, meaning: str, command: str
) -> dict[str, Any]:
    return {
        "measure": measure,
        "amount": amount,
        "total": total,
        "attention": attention,
        "meaning": meaning,
        "command": command if attention else None,
    }


def _small_fragments(snapshot: Snapshot, target_rows: int) -> dict[str, Any]:
    small = sum(snapshot.live_rows(fragment) < target_rows for fragment in snapshot.fragments)
    # Only neighbours can be joined: a single small fragment is fine.
    joined = sum(len(group) for group in plan(snapshot, target_rows, deleted_share=1.0))
    arguments = "" if target_rows == TARGET_ROWS else f"target_rows={target_rows}"
    return _measure(
        "small fragments",
        small,
        len(snapshot.fragments),
        joined > 1,
        f"fragments with fewer than {target_rows:,} rows; each needs extra requests in a scan",
        f"ds.compact({arguments})",
    )


def _deleted_rows(snapshot: Snapshot) -> dict[str, Any]:
    physical = snapshot.physical_rows
    worn = [
        fragment
        for fragment in snapshot.fragments
        if fragment.physical_rows - snapshot.live_rows(fragment) > DELETED_SHARE * fragment.physical_rows
    ]
    return _measure(
        "deleted rows",
        physical - snapshot.num_rows,
        physical,
        bool(worn),
        f"deleted rows that scans still read; fragments with more than {DELETED_SHARE:.0%} deleted rows: "
        f"{len(worn):,}",
        "ds.compact()",
    )


def _versions(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    listed = list_versions(snapshot.store)
    if listed is not None:
        count = len(listed.versions)
        yield _measure(
            "versions",
            count,
            None,
            count > _MANY_VERSIONS,
            "old versions, and files that only they use",
            "ds.cleanup(older_than=datetime.timedelta(days=7))",
        )


def _unused_files(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Data files in the folder of this dataset that this version does not use."""
    used = {file.path for fragment in snapshot.fragments for file in fragment.files if file.base_id is None}
    stored = [path.removeprefix(f"{DATA}/") for path in snapshot.store.list(DATA)]
    unused = [path for path in stored if path not in used and path.endswith(".lance")]
    yield _measure(
        "data files of other versions",
        len(unused),
        len(stored),
        len(unused) > max(_MANY_VERSIONS, len(used)),
        "data files not used by this version, but maybe by other versions",
        "ds.cleanup(older_than=datetime.timedelta(days=7))",
    )


def _incomplete_manifest(snapshot: Snapshot) -> dict[str, Any]:
    unknown = sum(
        fragment.num_deleted_rows is None or any(file.file_size is None for file in fragment.files)
        for fragment in snapshot.fragments
    )
    return _measure(
        "fragments without recorded sizes",
        unknown,
        len(snapshot.fragments),
        unknown > 0,
        "opening these files or counting their rows needs extra requests",
        "ds.compact()",
    )


def _indices(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    present = set(fragment_ids(snapshot.fragments).tolist())
    by_name: dict[str, list[IndexSegment]] = {}
    for segment in parse_index_section(snapshot.index_section or b""):
        if segment.fields:
            by_name.setdefault(segment.name, []).append(segment)
    for name, segments in by_name.items():
        covered = set().union(*(segment.fragment_ids or () for segment in segments))
        missing = len(present - covered)
        yield _measure(
            f"fragments outside of index '{name}'",
            missing,
            len(present),
            missing > 0,
            "fragments that queries have to scan because the index does not cover them",
            "ds.optimize_indices()",
        )
