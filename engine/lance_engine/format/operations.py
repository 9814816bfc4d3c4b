"""The operations of the format: the possible changes of a commit, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from lance_engine.format.fragment import DataFile, Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.format.manifest import BasePath
from lance_engine.schema_tree import Schema


class OperationKind(Enum):
    """The operations of the format; each value is the name of the field of the Transaction message."""

    APPEND = "append"
    DELETE = "delete"
    OVERWRITE = "overwrite"
    CREATE_INDEX = "create_index"
    REWRITE = "rewrite"
    MERGE = "merge"
    RESTORE = "restore"
    RESERVE_FRAGMENTS = "reserve_fragments"
    UPDATE = "update"
    PROJECT = "project"
    UPDATE_CONFIG = "update_config"
    DATA_REPLACEMENT = "data_replacement"
    UPDATE_MEM_WAL_STATE = "update_mem_wal_state"
    CLONE = "clone"
    UPDATE_BASES = "update_bases"
    DATA_OVERLAY = "data_overlay"


@dataclass(frozen=True, slots=True)
class Append:
    """Appended fragments. Their ids, and stable row ids, are assigned at commit."""

    fragments: tuple[Fragment, ...]

    kind = OperationKind.APPEND


@dataclass(frozen=True, slots=True)
class Delete:
    """Deleted rows: the new state of the fragments that keep some rows, and the ids of the others."""

    updated_fragments: tuple[Fragment, ...]
    removed_fragment_ids: tuple[int, ...] = ()
    predicate: str = ""

    kind = OperationKind.DELETE


@dataclass(frozen=True, slots=True)
class Update:
    """Updated rows: removed from their fragments, and rewritten to `new_fragments`.

    The ids of new fragments are assigned at commit. With stable row ids, a new fragment contains the ids and
    creation versions of the moved rows, which come first; new rows get theirs at commit. `fields_modified`
    are the ids of the fields with new values. With `inserts_keys`, the new rows have keys that no other
    writer may insert at the same time. `inserts_rows`, which is not stored, says that some rows are new.

    `in_place` means that columns were replaced without moving rows; only other writers commit that.
    """

    removed_fragment_ids: tuple[int, ...]
    updated_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]
    fields_modified: tuple[int, ...] = ()
    in_place: bool = False
    inserts_keys: bool = False
    inserts_rows: bool = False

    kind = OperationKind.UPDATE


@dataclass(frozen=True, slots=True)
class Merge:
    """Columns added or replaced: the complete list of fragments, with their new files, and the schema."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    preserves_nullability: bool

    kind = OperationKind.MERGE


@dataclass(frozen=True, slots=True)
class Project:
    """A schema with columns renamed, reordered or dropped; the data files are kept."""

    schema: Schema
    preserves_nullability: bool

    kind = OperationKind.PROJECT


@dataclass(frozen=True, slots=True)
class DataReplacement:
    """Columns of existing fragments with new values in place: a data file per fragment id.

    The file contains the new values of all physical rows; earlier files of these fields are no longer used.
    """

    files: tuple[tuple[int, DataFile], ...]

    kind = OperationKind.DATA_REPLACEMENT


@dataclass(frozen=True, slots=True)
class Overwrite:
    """New fragments and a new schema replace everything; creates the dataset if it does not exist."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()

    kind = OperationKind.OVERWRITE


@dataclass(frozen=True, slots=True)
class Restore:
    """Restores an earlier version as the latest."""

    version: int

    kind = OperationKind.RESTORE


@dataclass(frozen=True, slots=True)
class Clone:
    """The first version of a branch or clone: a version of another dataset, without copying its files.

    `path` is the location of that dataset, `branch` the branch of the version (None: the main branch),
    `new_branch` the branch that starts here.
    """

    path: str
    version: int
    branch: str | None = None
    new_branch: str | None = None
    is_shallow: bool = True

    kind = OperationKind.CLONE


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """Fragment ids reserved for a later Rewrite."""

    count: int

    kind = OperationKind.RESERVE_FRAGMENTS


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """The live rows of the old fragments, in order, are the rows of the new ones, whose ids were reserved."""

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class RewrittenIndex:
    """The segment that replaces segment `old`, of the same name, in new files.

    Its entries point to the row positions after the Rewrite.
    """

    old: UUID
    new: IndexSegment


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The same rows in other files.

    Indices of the old fragments no longer cover these rows, except those that name rows by stable row ids
    and those in `indices`.
    """

    groups: tuple[RewriteGroup, ...]
    indices: tuple[RewrittenIndex, ...] = ()

    kind = OperationKind.REWRITE


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Segments of indices added and removed, in any combination; table data does not change."""

    added: tuple[IndexSegment, ...] = ()
    removed: tuple[IndexSegment, ...] = ()

    kind = OperationKind.CREATE_INDEX


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """Changes of a string map: a value None removes the key; `replace` drops all other keys."""

    entries: Mapping[str, str | None]
    replace: bool = False

    def apply(self, current: Mapping[str, str]) -> dict[str, str]:
        """The map after the change."""
        changed = {} if self.replace else dict(current)
        for key, value in self.entries.items():
            if value is None:
                changed.pop(key, None)
            else:
                changed[key] = value
        return changed


@dataclass(frozen=True, slots=True)
class UpdateConfig:
    """Changes of the metadata maps. None: this map does not change; `fields` has field ids as keys."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    fields: Mapping[int, MapUpdate] = field(default_factory=dict)

    kind = OperationKind.UPDATE_CONFIG


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """New base paths for files; only other writers commit this operation."""

    added: tuple[BasePath, ...]

    kind = OperationKind.UPDATE_BASES


@dataclass(frozen=True, slots=True)
class OtherOperation:
    """An operation that can be recognised but not executed, with its serialised message."""

    kind: OperationKind
    message: bytes = field(repr=False)


Operation = (
    Append
    | Delete
    | Update
    | Merge
    | Project
    | Overwrite
    | Restore
    | Clone
    | ReserveFragments
    | Rewrite
    | CreateIndex
    | UpdateConfig
    | DataReplacement
    | UpdateBases
    | OtherOperation
)
