"""The conflict rules: the table is complete, and its conditions judge what they say."""

from __future__ import annotations

import pytest
from lance_engine.format.transaction import (
    Append,
    MapUpdate,
    Operation,
    OperationKind,
    OtherOperation,
    Overwrite,
    Project,
    UpdateConfig,
)
from lance_engine.table.conflicts import RULES, Verdict, check
from lance_engine.types import Schema

OK, RETRY, INCOMPATIBLE = Verdict.COMPATIBLE, Verdict.RETRY, Verdict.INCOMPATIBLE
NONE = Schema(())


def _other(kind: OperationKind) -> Operation:
    return OtherOperation(kind, b"")


def _config(**entries: str) -> UpdateConfig:
    return UpdateConfig(config=MapUpdate(dict(entries)))


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
        # Conditions that need what only the author of the operation knows count as met.
        (_other(OperationKind.DELETE), _other(OperationKind.DELETE), RETRY),
    ],
)
def test_other_pairs(mine: Operation, theirs: Operation, verdict: Verdict) -> None:
    assert check(mine, theirs) is verdict
