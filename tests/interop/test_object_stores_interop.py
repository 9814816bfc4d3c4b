"""Datasets on S3, with and without DynamoDB, shared with the official implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

if TYPE_CHECKING:
    from conftest import ObjectStore

TABLE = pa.table({"id": range(40), "s": [f"s{i}" for i in range(40)]})


@pytest.fixture(params=["s3", "ddb"])
def uri(request: pytest.FixtureRequest, object_store: ObjectStore) -> str:
    return getattr(object_store, request.param)("folder/t.lance")


def _theirs(uri: str, store: ObjectStore) -> lance.LanceDataset:
    return lance.dataset(uri, storage_options=store.options)


@pytest.mark.sampled(1)
def test_both_write_the_same_dataset_in_turns(uri: str, object_store: ObjectStore) -> None:
    options = object_store.options
    ours = DatasetVersion(write_dataset(TABLE.slice(0, 20), uri, storage_options=options))
    assert _theirs(uri, object_store).to_table().equals(TABLE.slice(0, 20))
    lance.write_dataset(TABLE.slice(20, 10), uri, mode="append", storage_options=options)
    # The older snapshot of ours commits over it.
    ours = ours.delete("id = 5")
    assert ours.version == 3
    theirs = _theirs(uri, object_store)
    assert theirs.version == 3
    theirs.delete("id = 6")
    ours = DatasetVersion(write_dataset(TABLE.slice(30), uri, "append", storage_options=options))
    ours = ours.update({"s": "'new'"}, "id = 7")
    rows = {row["id"]: row["s"] for row in _theirs(uri, object_store).to_table().to_pylist()}
    expected = {i: f"s{i}" for i in range(40) if i not in (5, 6)} | {7: "new"}
    assert rows == expected
    assert {row["id"]: row["s"] for row in ours.scan().to_table().to_pylist()} == expected
    assert [version["version"] for version in _theirs(uri, object_store).versions()] == [1, 2, 3, 4, 5, 6]
    _theirs(uri, object_store).tags.create("theirs", 2)
    ours.tags.create("ours", 3)
    assert {tag.name for tag in ours.tags.list()} == set(_theirs(uri, object_store).tags.list())
    assert DatasetVersion.open(uri, tag="theirs", storage_options=options).count_rows() == 30


def test_the_items_in_dynamodb_are_alike(object_store: ObjectStore) -> None:
    options = object_store.options
    ours, theirs = object_store.ddb("x/ours.lance"), object_store.ddb("x/theirs.lance")
    write_dataset(TABLE, ours, storage_options=options)
    lance.write_dataset(TABLE, theirs, storage_options=options)
    client = object_store.client("dynamodb")
    items = {item["base_uri"]["S"]: item for item in client.scan(TableName=object_store.table)["Items"]}
    assert set(items) == {"x/ours.lance", "x/theirs.lance"}
    mine, their = items["x/ours.lance"], items["x/theirs.lance"]
    assert set(mine) == set(their)
    assert mine["path"]["S"] == their["path"]["S"].replace("theirs", "ours")
    assert mine["version"] == their["version"] == {"N": "1"}
    assert mine["committer"] == their["committer"]


def test_stale_writers_meet_in_dynamodb(object_store: ObjectStore) -> None:
    uri, options = object_store.ddb("t.lance"), object_store.options
    ours = DatasetVersion(write_dataset(TABLE, uri, storage_options=options))
    theirs = _theirs(uri, object_store)
    ours.delete("id = 1")
    theirs.delete("id = 2")
    ours.delete("id = 3")
    left = _theirs(uri, object_store).to_table()["id"].to_pylist()
    assert left == [i for i in range(40) if i not in (1, 2, 3)]


@pytest.mark.parametrize("finalised", [False, True])
def test_they_read_what_we_left_staged_and_we_what_they_did(
    object_store: ObjectStore, finalised: bool
) -> None:
    """Both repair a version whose writer died after the entry was made, before or after the copy."""
    options = object_store.options
    s3, dynamodb = object_store.client("s3"), object_store.client("dynamodb")
    uri = object_store.ddb("t.lance")
    final = "t.lance/_versions/18446744073709551613.manifest"
    for reader in ("ours", "theirs"):
        write_dataset(TABLE, uri, "overwrite", storage_options=options)
        latest = DatasetVersion.open(uri, storage_options=options)
        version = latest.version
        final = f"t.lance/_versions/{2**64 - 1 - version}.manifest"
        staged = f"{final}-0f8c5a2e-2f9c-4b0b-9d3b-0d2e4c1a7b5e"
        s3.copy_object(Bucket=object_store.bucket, Key=staged, CopySource=f"{object_store.bucket}/{final}")
        if not finalised:
            s3.delete_object(Bucket=object_store.bucket, Key=final)
        dynamodb.update_item(
            TableName=object_store.table,
            Key={"base_uri": {"S": "t.lance"}, "version": {"N": str(version)}},
            UpdateExpression="SET #p = :p",
            ExpressionAttributeNames={"#p": "path"},
            ExpressionAttributeValues={":p": {"S": staged}},
        )
        if reader == "ours":
            assert DatasetVersion.open(uri, storage_options=options).scan().to_table().equals(TABLE)
            assert DatasetVersion.open(uri, version, storage_options=options).version == version
        else:
            assert _theirs(uri, object_store).to_table().equals(TABLE)
        item = dynamodb.get_item(
            TableName=object_store.table, Key={"base_uri": {"S": "t.lance"}, "version": {"N": str(version)}}
        )["Item"]
        assert item["path"]["S"] == final
        keys = [
            entry["Key"]
            for entry in s3.list_objects_v2(Bucket=object_store.bucket, Prefix="t.lance/_versions")[
                "Contents"
            ]
        ]
        assert final in keys
        if reader == "ours":
            assert staged not in keys


def test_branches_and_clones_on_object_stores(uri: str, object_store: ObjectStore) -> None:
    options = object_store.options
    ours = DatasetVersion(write_dataset(TABLE, uri, storage_options=options))
    ours.branches.create("exp/dev")
    dev = DatasetVersion.open(uri, branch="exp/dev", storage_options=options).delete("id < 10")
    theirs = _theirs(uri, object_store).checkout_version(("exp/dev", None))
    assert theirs.to_table().equals(dev.scan().to_table())
    theirs.delete("id = 20")
    dev = DatasetVersion.open(uri, branch="exp/dev", storage_options=options)
    assert (dev.version, dev.count_rows()) == (3, 29)
    dev.branches.delete("exp/dev")
    ours.branches.create("exp/dev")
    assert DatasetVersion.open(uri, branch="exp/dev", storage_options=options).count_rows() == 40
    clone = ours.shallow_clone(object_store.s3("clone.lance"))
    assert clone.delete("id = 0").count_rows() == 39
    assert _theirs(clone.uri, object_store).count_rows() == 39


HINT = "_versions/latest_version_hint.json"


@pytest.mark.parametrize(
    ("hint", "v2_names"),
    [
        ('{"version":1}', True),
        ('{"version":3}', False),
        *(
            pytest.param(hint, v2_names, marks=pytest.mark.slow)
            for hint, v2_names in [
                ('{"version":1}', False),
                ('{"version":3}', True),
                ('{"version":99}', True),
                ('{"version":99}', False),
                ("junk", True),
                (None, True),
            ]
        ),
    ],
)
def test_hints_of_copied_tables(object_store: ObjectStore, hint: str | None, v2_names: bool) -> None:
    """A table copied with an old hint, and some of its versions gone: no acknowledged row is lost."""
    options, s3, bucket = object_store.options, object_store.client("s3"), object_store.bucket
    from_uri, uri = object_store.s3("original.lance"), object_store.s3("copied.lance")
    naming = {"enable_v2_manifest_paths": v2_names, "storage_options": options}
    for number in range(4):
        lance.write_dataset(TABLE.slice(number, 1), from_uri, mode="append" if number else "create", **naming)
    manifests = sorted(
        entry["Key"]
        for entry in s3.list_objects_v2(Bucket=bucket, Prefix="original.lance/_versions/")["Contents"]
        if entry["Key"].endswith(".manifest")
    )
    removed = manifests[2] if v2_names else manifests[1]  # version 2
    for entry in s3.list_objects_v2(Bucket=bucket, Prefix="original.lance/")["Contents"]:
        key = entry["Key"]
        if key != removed and not key.endswith("hint.json"):
            copied = key.replace("original.lance", "copied.lance")
            s3.copy_object(Bucket=bucket, Key=copied, CopySource=f"{bucket}/{key}")
    if hint is not None:
        s3.put_object(Bucket=bucket, Key=f"copied.lance/{HINT}", Body=hint.encode())
    assert DatasetVersion.open(uri, storage_options=options).version == 4
    write_dataset(TABLE.slice(4, 1), uri, "append", storage_options=options)
    if hint is not None:  # touched, or written by someone slow
        s3.put_object(Bucket=bucket, Key=f"copied.lance/{HINT}", Body=hint.encode())
    changed = DatasetVersion.open(uri, storage_options=options).delete("id = 0")
    assert changed.version == 6
    lance.write_dataset(TABLE.slice(5, 1), uri, mode="append", storage_options=options)
    for found in (DatasetVersion.open(uri, storage_options=options).scan(), _theirs(uri, object_store)):
        assert sorted(found.to_table()["id"].to_pylist()) == [1, 2, 3, 4, 5]
