"""Versions of a dataset: snapshots, commits and their conflicts, row ids, deletions."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.file.zone_map import ZoneMap
    from lance_engine.format.fragment import Fragment, fragment_from_bytes, fragment_to_bytes
    from lance_engine.format.index_section import IndexSegment
    from lance_engine.format.operations import CreateIndex, DataReplacement, Merge, Operation, OperationKind
    from lance_engine.format.transaction import Append, Overwrite, Transaction
    from lance_engine.table.auto_cleanup import INTERVAL as CLEANUP_INTERVAL
    from lance_engine.table.auto_cleanup import OLDER_THAN as CLEANUP_AGE
    from lance_engine.table.auto_cleanup import RETAIN_VERSIONS as CLEANUP_RETAINED
    from lance_engine.table.branches import read_branch
    from lance_engine.table.build import CreateOptions
    from lance_engine.table.commit import Others
    from lance_engine.table.constraints import Check, Constraints, Key, constraints_of
    from lance_engine.table.durations import duration, moment_before, timespan
    from lance_engine.table.refs import branch_store, root_store
    from lance_engine.table.seen_version import Identity, SeenFolder, SeenVersion, identity, settled
    from lance_engine.table.snapshot import Snapshot, U64Array
    from lance_engine.table.versions import find_snapshot, list_versions, open_snapshot, read_version
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "file.zone_map": "ZoneMap",
            "format.fragment": "Fragment fragment_from_bytes fragment_to_bytes",
            "format.index_section": "IndexSegment",
            "format.operations": "CreateIndex DataReplacement Merge Operation OperationKind",
            "format.transaction": "Append Overwrite Transaction",
            "table.auto_cleanup": (
                "INTERVAL=CLEANUP_INTERVAL OLDER_THAN=CLEANUP_AGE RETAIN_VERSIONS=CLEANUP_RETAINED"
            ),
            "table.branches": "read_branch",
            "table.build": "CreateOptions",
            "table.commit": "Others",
            "table.constraints": "Check Constraints Key constraints_of",
            "table.durations": "duration moment_before timespan",
            "table.refs": "branch_store root_store",
            "table.seen_version": "Identity SeenFolder SeenVersion identity settled",
            "table.snapshot": "Snapshot U64Array",
            "table.versions": "find_snapshot list_versions open_snapshot read_version",
        },
    )
