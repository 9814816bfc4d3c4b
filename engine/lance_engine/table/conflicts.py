"""Conflict rules: which operation can be committed after which other one, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final

from lance_engine.format.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Operation,
    Overwrite,
    Project,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
)


class Verdict(IntEnum):
    """The effect of a concurrent commit on ours; with several, the worst one counts."""

    COMPATIBLE = 0
    # Both change the same fragments: compatible if they change different rows, otherwise RETRY.
    REBASE = 1
    RETRY = 2
    INCOMPATIBLE = 3


# Row: the operation being committed. Column: an operation committed since the version that was read.
# ok: compatible. R: read again and redo the work. X: no longer applies. The rest are conditions:
# - overlap: R if both touch the same fragment
# - rebase: merge the deletions if the rows differ, else R
# - tighten: R if the Project made a nullable field required
# - keyed: R if mine inserts keys and theirs added or changed rows, which may have the same keys
# - replaced: overlap, or keyed
# - shard: R if rows of the same shard of the write-ahead log are moved into the table
# - covered: R if an index covers a rewritten fragment
# - name: R for the same index name
# - column: R for the same column
# - removed: X if the fragment is gone
# - moved: removed, or R if rows or values changed
# - dropped: X if the column is gone
# - cell: R for the same fragment and column
# - key: X if both set the same key
# - metadata: X if both touch the same metadata map
# - base: X for the same id, name or path
# Combinations that are not in the table count as R. A clone starts a history, so nothing is committed before
# it; overlays need a feature flag that is refused; and only others change the state of the write-ahead log.
_TABLE: Final = """
theirs            append  delete  update  rewrite  merge  project  overwrite  restore  create_index  data_replacement  config  metadata  reserve_fragments  update_bases  update_mem_wal_state
append            ok      ok      ok      ok       R      tighten  X          X        ok            ok                ok      ok        ok                 ok            X
delete            ok      rebase  rebase  overlap  R      ok       X          X        ok            overlap           ok      ok        ok                 ok            X
update            keyed   rebase  rebase  overlap  R      tighten  X          X        ok            replaced          ok      ok        ok                 ok            shard
rewrite           ok      overlap overlap overlap  R      ok       X          X        covered       overlap           ok      ok        ok                 ok            ok
merge             R       R       R       R        R      X        X          X        ok            R                 ok      R         ok                 ok            X
project           tighten ok      tighten ok       R      R        X          X        ok            tighten           ok      ok        ok                 ok            X
create_index      ok      ok      ok      covered  ok     ok       X          X        name          column            ok      ok        ok                 ok            X
data_replacement  ok      removed moved   overlap  R      dropped  X          X        column        cell              ok      ok        ok                 ok            X
overwrite         ok      ok      ok      ok       ok     ok       R          ok       ok            ok                key     ok        ok                 ok            X
restore           ok      ok      ok      ok       ok     ok       ok         ok       ok            ok                ok      X         ok                 ok            X
config            ok      ok      ok      ok       ok     ok       key        ok       ok            ok                key     ok        ok                 ok            ok
metadata          ok      ok      ok      ok       R      ok       X          X        ok            ok                ok      metadata  ok                 ok            ok
reserve_fragments ok      ok      ok      ok       ok     ok       X          X        ok            ok                ok      ok        ok                 ok            ok
update_bases      ok      ok      ok      ok       ok     ok       ok         ok       ok            ok                ok      ok        ok                 base          ok
"""  # noqa: E501 - a table is read by its columns

_VERDICTS: Final = {"ok": Verdict.COMPATIBLE, "R": Verdict.RETRY, "X": Verdict.INCOMPATIBLE}


def _parse_table(text: str) -> dict[tuple[str, str], str]:
    header, *rows = [line.split() for line in text.strip().splitlines()]
    return {
        (mine, theirs): cell for mine, *cells in rows for theirs, cell in zip(header[1:], cells, strict=True)
    }


RULES: Final[Mapping[tuple[str, str], str]] = _parse_table(_TABLE)


def check(mine: Operation, theirs: Operation) -> Verdict:
    """The effect on the commit of `mine` if `theirs` was committed first."""
    return max(_check_pair(mine, row, theirs, column) for row in _names(mine) for column in _names(theirs))


def _check_pair(mine: Operation, row: str, theirs: Operation, column: str) -> Verdict:
    rule = RULES.get((row, column), "R")
    return _VERDICTS[rule] if rule in _VERDICTS else _CONDITIONS[rule](mine, theirs)


def _names(operation: Operation) -> Iterable[str]:
    """The rows or columns of the table for an operation: UpdateConfig changes maps with different rules."""
    if not isinstance(operation, UpdateConfig):
        return (operation.kind.value,)
    names: list[str] = []
    if operation.schema_metadata is not None or operation.fields:
        names.append("metadata")
    if operation.config is not None or operation.table_metadata is not None or not names:
        names.append("config")
    return names


def _touched(operation: Operation) -> set[int] | None:
    """The existing fragments that an operation changes or removes; None if unknown."""
    match operation:
        case Append():
            return set()
        case Delete() | Update():
            updated = {fragment.id for fragment in operation.updated_fragments}
            return updated | set(operation.removed_fragment_ids)
        case Rewrite():
            return {fragment.id for group in operation.groups for fragment in group.old_fragments}
        case DataReplacement():
            return {fragment_id for fragment_id, _ in operation.files}
    return None


def _is_disjoint(mine: Operation, theirs: Operation) -> bool:
    ours, others = _touched(mine), _touched(theirs)
    return ours is not None and others is not None and not ours & others


def _overlap(mine: Operation, theirs: Operation) -> Verdict:
    return Verdict.COMPATIBLE if _is_disjoint(mine, theirs) else Verdict.RETRY


def _rebase(mine: Operation, theirs: Operation) -> Verdict:
    if _keyed(mine, theirs) is Verdict.RETRY:
        return Verdict.RETRY
    return Verdict.COMPATIBLE if _is_disjoint(mine, theirs) else Verdict.REBASE


def _keyed(mine: Operation, theirs: Operation) -> Verdict:
    if not isinstance(mine, Update) or not mine.inserts_keys:
        return Verdict.COMPATIBLE
    match theirs:
        # Whether their rows have the same keys would have to be looked up.
        case Append():
            may_have_keys = bool(theirs.fragments)
        case Update():
            may_have_keys = bool(theirs.new_fragments) or theirs.in_place
        case Delete():
            may_have_keys = False
        case _:
            may_have_keys = True
    return Verdict.RETRY if may_have_keys else Verdict.COMPATIBLE


def _replaced(mine: Operation, theirs: Operation) -> Verdict:
    return max(_overlap(mine, theirs), _keyed(mine, theirs))


def _tighten(mine: Operation, theirs: Operation) -> Verdict:
    projects = [operation for operation in (mine, theirs) if isinstance(operation, Project)]
    relaxed = all(project.preserves_nullability for project in projects)
    return Verdict.COMPATIBLE if relaxed else Verdict.RETRY


def _removed(mine: Operation, theirs: Operation) -> Verdict:
    assert isinstance(theirs, (Delete, Update))
    gone = set(theirs.removed_fragment_ids) & (_touched(mine) or set())
    return Verdict.INCOMPATIBLE if gone else Verdict.COMPATIBLE


def _moved(mine: Operation, theirs: Operation) -> Verdict:
    return max(_removed(mine, theirs), _overlap(mine, theirs))


def _dropped(mine: Operation, theirs: Operation) -> Verdict:
    assert isinstance(mine, DataReplacement)
    assert isinstance(theirs, Project)
    left = {field.id for field in theirs.schema.walk()}
    replaced = {field for _, file in mine.files for field in file.fields if field >= 0}
    return Verdict.COMPATIBLE if replaced <= left else Verdict.INCOMPATIBLE


def _cell(mine: Operation, theirs: Operation) -> Verdict:
    ours, others = _cells(mine), _cells(theirs)
    return Verdict.RETRY if ours & others else Verdict.COMPATIBLE


def _cells(operation: Operation) -> set[tuple[int, int]]:
    """The fragments and fields whose values are replaced."""
    assert isinstance(operation, DataReplacement)
    return {(fragment_id, field) for fragment_id, file in operation.files for field in file.fields}


def _name(mine: Operation, theirs: Operation) -> Verdict:
    return Verdict.RETRY if _index_names(mine) & _index_names(theirs) else Verdict.COMPATIBLE


def _index_names(operation: Operation) -> set[str]:
    assert isinstance(operation, CreateIndex)
    return {segment.name for segment in (*operation.added, *operation.removed)}


def _covered(mine: Operation, theirs: Operation) -> Verdict:
    index, rewrite = (mine, theirs) if isinstance(mine, CreateIndex) else (theirs, mine)
    rewritten = _touched(rewrite)
    assert isinstance(index, CreateIndex)
    segments = (*index.added, *index.removed)
    if rewritten is None or any(segment.fragment_ids is None for segment in segments):
        return Verdict.RETRY
    # Of a segment that is removed, the Rewrite may have made, or make, another one.
    hit = any(rewritten.intersection(segment.fragment_ids or ()) for segment in segments)
    return Verdict.RETRY if hit else Verdict.COMPATIBLE


def _column(mine: Operation, theirs: Operation) -> Verdict:
    index, data = (mine, theirs) if isinstance(mine, CreateIndex) else (theirs, mine)
    assert isinstance(index, CreateIndex)
    replaced = {field for _, field in _cells(data)}
    indexed = {field for segment in index.added for field in segment.fields}
    return Verdict.RETRY if replaced & indexed else Verdict.COMPATIBLE


def _key(mine: Operation, theirs: Operation) -> Verdict:
    for ours, other in zip(_changed_maps(mine), _changed_maps(theirs), strict=True):
        if ours is None or other is None:
            continue
        if ours.replace or other.replace or ours.entries.keys() & other.entries.keys():
            return Verdict.INCOMPATIBLE
    return Verdict.COMPATIBLE


def _changed_maps(operation: Operation) -> tuple[MapUpdate | None, MapUpdate | None]:
    """The changes of an operation to the config and to the table metadata."""
    match operation:
        case UpdateConfig():
            return operation.config, operation.table_metadata
        case Overwrite():
            return (MapUpdate(operation.config_upserts) if operation.config_upserts else None), None
    return None, None


def _metadata(mine: Operation, theirs: Operation) -> Verdict:
    assert isinstance(mine, UpdateConfig)
    assert isinstance(theirs, UpdateConfig)
    both_schema = mine.schema_metadata is not None and theirs.schema_metadata is not None
    clash = both_schema or bool(mine.fields.keys() & theirs.fields.keys())
    return Verdict.INCOMPATIBLE if clash else Verdict.COMPATIBLE


def _shard(mine: Operation, theirs: Operation) -> Verdict:
    # Updates of ours move no rows of the log; of an update that is not understood this is not known.
    return Verdict.COMPATIBLE if isinstance(mine, Update) else Verdict.RETRY


def _base(mine: Operation, theirs: Operation) -> Verdict:
    if not isinstance(mine, UpdateBases) or not isinstance(theirs, UpdateBases):
        return Verdict.RETRY
    clash = any(
        # Id 0 requests a free one.
        (ours.id == other.id and ours.id)
        or (ours.name == other.name and ours.name is not None)
        or ours.path == other.path
        for ours in mine.added
        for other in theirs.added
    )
    return Verdict.INCOMPATIBLE if clash else Verdict.COMPATIBLE


_CONDITIONS: Final[Mapping[str, Callable[[Operation, Operation], Verdict]]] = {
    "overlap": _overlap,
    "rebase": _rebase,
    "keyed": _keyed,
    "replaced": _replaced,
    "tighten": _tighten,
    "removed": _removed,
    "moved": _moved,
    "dropped": _dropped,
    "cell": _cell,
    "name": _name,
    "covered": _covered,
    "column": _column,
    "key": _key,
    "metadata": _metadata,
    "shard": _shard,
    "base": _base,
}
