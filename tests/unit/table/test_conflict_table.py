"""The conflict rules: the table is complete, and its conditions judge what they say."""

from __future__ import annotations

import pytest
from lance_engine.format.fragment import DataFile, Fragment
from lance_engine.format.manifest import BasePath
from lance_engine.format.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    OperationKind,
    OtherOperation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateBases,
    UpdateConfig,
)
from lance_engine.format.transaction import Transaction, parse_transaction, serialize_transaction
from lance_engine.schema_tree import Schema
from lance_engine.table.conflicts import RULES, Verdict, check

OK, REBASE, RETRY, INCOMPATIBLE = Verdict
NONE = Schema(())


def _other(kind: OperationKind) -> Operation:
    return OtherOperation(kind, b"")


def _fragment(fragment_id: int) -> Fragment:
    return Fragment(fragment_id, (), 1)


def _file() -> DataFile:
    return DataFile("x.lance", (0,), (0,), 2, 1)


def _config(**entries: str) -> UpdateConfig:
    return UpdateConfig(config=MapUpdate(dict(entries)))


def _bases(*bases: tuple[int, str, str | None]) -> UpdateBases:
    return UpdateBases(tuple(BasePath(number, path, False, name) for number, path, name in bases))


WAL = _other(OperationKind.UPDATE_MEM_WAL_STATE)
MOVED = Update((1,), (), ())


def test_the_table_covers_every_operation() -> None:
    # A clone only begins a branch; overlays need a feature flag that is refused; the write-ahead log is not
    # ours.
    columns = {kind.value for kind in OperationKind} - {"clone", "data_overlay", "update_config"}
    columns |= {"config", "metadata"}
    assert {theirs for _, theirs in RULES} == columns
    assert {mine for mine, _ in RULES} == columns - {"update_mem_wal_state"}
    assert len(RULES) == 14 * 15


@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [
        (Append(()), OK),
        (_other(OperationKind.DELETE), OK),
        (_other(OperationKind.UPDATE), OK),
        (_other(OperationKind.REWRITE), OK),
        (_other(OperationKind.MERGE), RETRY),
        (Project(NONE, preserves_nullability=True), OK),
        (Project(NONE, preserves_nullability=False), RETRY),
        (Overwrite((), NONE), INCOMPATIBLE),
        (_other(OperationKind.RESTORE), INCOMPATIBLE),
        (_other(OperationKind.CREATE_INDEX), OK),
        (_other(OperationKind.DATA_REPLACEMENT), OK),
        (_config(a="1"), OK),
        (UpdateConfig(schema_metadata=MapUpdate({"a": "b"})), OK),
        (_other(OperationKind.RESERVE_FRAGMENTS), OK),
        (_other(OperationKind.UPDATE_BASES), OK),
        (_other(OperationKind.UPDATE_MEM_WAL_STATE), INCOMPATIBLE),
        (_other(OperationKind.CLONE), RETRY),
        (_other(OperationKind.DATA_OVERLAY), RETRY),
    ],
)
def test_appending_after(theirs: Operation, verdict: Verdict) -> None:
    assert check(Append(()), theirs) is verdict


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        (Overwrite((), NONE), Append(()), OK),
        (Overwrite((), NONE), Overwrite((), NONE), RETRY),
        (Overwrite((), NONE), _other(OperationKind.RESTORE), OK),
        (Overwrite((), NONE, {"a": "1"}), _config(a="2"), INCOMPATIBLE),
        (Overwrite((), NONE, {"a": "1"}), _config(b="2"), OK),
        (Overwrite((), NONE), _config(b="2"), OK),
        (_config(a="1"), Overwrite((), NONE, {"a": "1"}), INCOMPATIBLE),
        (_config(a="1"), _config(a="1"), INCOMPATIBLE),
        (_config(a="1"), _config(b="1"), OK),
        (_config(a="1"), UpdateConfig(config=MapUpdate({}, replace=True)), INCOMPATIBLE),
        (_config(a="1"), UpdateConfig(table_metadata=MapUpdate({"a": "1"})), OK),
        (
            UpdateConfig(schema_metadata=MapUpdate({"a": "1"})),
            UpdateConfig(schema_metadata=MapUpdate({"b": "1"})),
            INCOMPATIBLE,
        ),
        (UpdateConfig(fields={1: MapUpdate({})}), UpdateConfig(fields={2: MapUpdate({})}), OK),
        (UpdateConfig(fields={1: MapUpdate({})}), UpdateConfig(fields={1: MapUpdate({})}), INCOMPATIBLE),
        # One operation may change maps with different rules: the worst verdict counts.
        (
            UpdateConfig(config=MapUpdate({"a": "1"}), fields={1: MapUpdate({})}),
            _other(OperationKind.MERGE),
            RETRY,
        ),
        (UpdateConfig(), UpdateConfig(), OK),
        (Project(NONE, preserves_nullability=True), Append(()), OK),
        (Project(NONE, preserves_nullability=False), Append(()), RETRY),
        (Project(NONE, preserves_nullability=True), Project(NONE, preserves_nullability=True), RETRY),
        # What an operation does not tell counts as the same fragment; which rows, only its author knows.
        (_other(OperationKind.DELETE), _other(OperationKind.DELETE), REBASE),
        (Delete((), (1,)), Delete((), (2,)), OK),
        (Delete((), (1,)), Delete((_fragment(1),)), REBASE),
        (Delete((), (1,)), Update((1,), (), ()), REBASE),
        (Update((1,), (), (), inserts_keys=True), Delete((), (1,)), REBASE),
        (Update((1,), (), (), inserts_keys=True), Append((_fragment(1),)), RETRY),
        (Update((1,), (), (), inserts_keys=True), Update((2,), (), (_fragment(0),)), RETRY),
        (Update((1,), (), (), inserts_keys=True), Update((2,), (), ()), OK),
        (Update((), (), (), inserts_keys=True), Delete((), (1,)), OK),
        # Values of keys that are replaced in place, too.
        (Update((), (), (), inserts_keys=True), Update((), (_fragment(1),), (), in_place=True), RETRY),
        (Update((), (), (), inserts_keys=True), DataReplacement(((1, _file()),)), RETRY),
        (Update((), (), ()), DataReplacement(((1, _file()),)), OK),
        (DataReplacement(((1, _file()),)), DataReplacement(((2, _file()),)), OK),
        (DataReplacement(((1, _file()),)), DataReplacement(((1, _file()), (2, _file()))), RETRY),
        (Update((1,), (), ()), Append((_fragment(1),)), OK),
        (Update((1,), (), ()), Project(NONE, preserves_nullability=False), RETRY),
        (Update((1,), (), ()), Rewrite((RewriteGroup((_fragment(1),), ()),)), RETRY),
        (Update((1,), (), ()), Rewrite((RewriteGroup((_fragment(2),), (_fragment(1),)),)), OK),
        (Rewrite((RewriteGroup((_fragment(2),), ()),)), Delete((_fragment(2),)), RETRY),
        (Rewrite((RewriteGroup((_fragment(2),), ()),)), Delete((_fragment(3),)), OK),
        (Merge((), NONE, preserves_nullability=True), Append(()), RETRY),
        (Restore(1), Delete((), (1,)), OK),
        (Delete((), (1,)), Restore(1), INCOMPATIBLE),
        (ReserveFragments(2), Append(()), OK),
        (_bases((0, "x", "x")), _bases((0, "y", "y")), OK),
        (_bases((0, "x", None)), _bases((0, "y", None)), OK),
        (_bases((0, "x", "x")), _bases((0, "x", "y")), INCOMPATIBLE),
        (_bases((0, "x", "x")), _bases((0, "z", "z"), (0, "y", "x")), INCOMPATIBLE),
        (_bases((3, "x", "x")), _bases((3, "y", "y")), INCOMPATIBLE),
        (_bases((3, "x", "x")), _other(OperationKind.UPDATE_BASES), RETRY),
        (_bases((3, "x", "x")), Overwrite((), NONE), OK),
        (MOVED, _bases((3, "x", "x")), OK),
        (MOVED, WAL, OK),
        (_other(OperationKind.UPDATE), WAL, RETRY),
        (Delete((), (1,)), WAL, INCOMPATIBLE),
        (Rewrite((RewriteGroup((_fragment(2),), ()),)), WAL, OK),
        (_config(a="1"), WAL, OK),
        (WAL, Append(()), RETRY),
        (_other(OperationKind.CLONE), Append(()), RETRY),
        (Restore(1), _other(OperationKind.DATA_OVERLAY), RETRY),
    ],
)
def test_other_pairs(mine: Operation, theirs: Operation, verdict: Verdict) -> None:
    assert check(mine, theirs) is verdict


def test_bases_survive_serialisation() -> None:
    operation = _bases((0, "s3://bucket/x", "x"), (4, "/y", None))
    transaction = Transaction(3, "u", operation)
    assert parse_transaction(serialize_transaction(transaction)) == transaction


@pytest.mark.parametrize("keys", [False, True])
def test_inserted_keys_survive_serialisation(keys: bool) -> None:
    transaction = Transaction(3, "u", Update((), (), (), inserts_keys=keys))
    assert parse_transaction(serialize_transaction(transaction)) == transaction


@pytest.mark.parametrize("rule", sorted(set(RULES.values())))
def test_every_rule_of_the_table_has_a_judge(rule: str) -> None:
    """Judged for the operations that it stands for, which say nothing of what they touch."""
    for (mine, theirs), cell in RULES.items():
        if cell == rule:
            kinds = [
                OperationKind.UPDATE_CONFIG if name in ("config", "metadata") else OperationKind(name)
                for name in (mine, theirs)
            ]
            assert check(*(EXAMPLES.get(kind, _other(kind)) for kind in kinds)) in Verdict


# Of these kinds every operation can be understood.
EXAMPLES: dict[OperationKind, Operation] = {
    OperationKind.DELETE: Delete((), ()),
    OperationKind.UPDATE: Update((), (), ()),
    OperationKind.PROJECT: Project(NONE, preserves_nullability=True),
    OperationKind.UPDATE_CONFIG: UpdateConfig(),
    OperationKind.CREATE_INDEX: CreateIndex(),
    OperationKind.DATA_REPLACEMENT: DataReplacement(()),
}
