"""Transactions: bytes to dataclasses and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.format.manifest import BasePath, DataFile, Fragment
from lance_engine.format.pb import table_pb2
from lance_engine.format.transaction import (
    Append,
    Clone,
    MapUpdate,
    Operation,
    OperationKind,
    OtherOperation,
    Overwrite,
    Project,
    Transaction,
    UpdateBases,
    UpdateConfig,
    parse_transaction,
    serialize_transaction,
)
from lance_engine.schema_tree import Schema

FRAGMENT = Fragment(0, (DataFile("a.lance", (0,), (0,), 2, 1, 10),), 5)
SCHEMA = Schema.from_arrow(pa.schema([("a", pa.int64())], metadata={"k": "v"}))
BARE = Schema(SCHEMA.fields)


@pytest.mark.parametrize(
    "operation",
    [
        Append((FRAGMENT, FRAGMENT)),
        Append(()),
        Overwrite((FRAGMENT,), SCHEMA, {"lance.a": "b"}, (BasePath(1, "/x", True),)),
        Project(BARE, preserves_nullability=True),
        Project(BARE, preserves_nullability=False),
        UpdateConfig(
            MapUpdate({"a": "1", "b": None}), MapUpdate({}, replace=True), None, {3: MapUpdate({"x": ""})}
        ),
        UpdateConfig(),
        Clone("/source", 3),
        Clone("s3://b/source", 3, "dev", "a/b"),
        UpdateBases((BasePath(0, "/x", False),)),
        UpdateBases((BasePath(1, "/x", True, "x"), BasePath(2, "s3://b/y", False, None))),
        OtherOperation(
            OperationKind.UPDATE_MEM_WAL_STATE,
            table_pb2.Transaction.UpdateMemWalState(
                compacted_sstables=[table_pb2.CompactedSsTable()]
            ).SerializeToString(),
        ),
    ],
    ids=lambda operation: operation.kind.value,
)
def test_operations_survive(operation: Operation) -> None:
    transaction = Transaction(4, "uuid", operation, {"__lance_commit_message": "hi"}, "tag")
    assert parse_transaction(serialize_transaction(transaction)) == transaction


def test_every_kind_is_a_field_of_the_message() -> None:
    (oneof,) = table_pb2.Transaction.DESCRIPTOR.oneofs
    assert [kind.value for kind in OperationKind] == [field.name for field in oneof.fields]
    assert [field.number for field in oneof.fields] == list(range(100, 116))
    for kind in OperationKind:
        data = serialize_transaction(Transaction(1, "u", OtherOperation(kind, b"")))
        assert parse_transaction(data).operation.kind is kind


def test_file_names_carry_version_and_uuid() -> None:
    assert Transaction(4, "u-u", Append(())).file_name == "4-u-u.txn"


def test_what_is_no_transaction_is_corrupt() -> None:
    for data in (b"\xff", b"", bytes.fromhex("12027575")):
        with pytest.raises(CorruptFileError):
            parse_transaction(data)
