"""A dataset from somebody else cannot reach or damage anything except itself."""

from __future__ import annotations

import dataclasses
import datetime
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    CorruptFileError,
    ExternalAccessError,
    LanceError,
    StorageAccessError,
    UnsupportedFeatureError,
)
from lance_engine.format.manifest import BasePath, parse_manifest_file, serialize_manifest_file
from lance_engine.format.pb import file_pb2
from lance_engine.format.schema import schema_from_messages
from lance_engine.io.local import LocalStore
from lance_engine.operations.whole import drop_dataset, rename_dataset

import lance_sql

NOW = datetime.timedelta(0)
FOLDERS = ["_transactions", "_indices", "_deletions", "_refs", "_versions", "data"]


def dataset(path: Path) -> DatasetVersion:
    table = pa.table({"a": range(10)})
    lance_sql.write(table, path)
    lance_sql.write(table, path, "append").delete("a = 3").create_index("a")
    lance_sql.open(path).branches.create("b")
    lance_sql.write(table, path, "append")
    lance_sql.open(path).tags.create("t")
    return lance_sql.open(path)


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """Files of somebody else, which must not be removed."""
    folder = tmp_path / "others"
    for name in ("x.lance", "x.txn", "1.arrow", "x.json", "x.tmp", "deep/x.lance"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"precious")
        os.utime(folder / name, (0, 0))
    return folder


def intact(others: Path) -> bool:
    return len([path for path in others.rglob("*") if path.is_file()]) == 6


@pytest.mark.parametrize("folder", [*FOLDERS, "tree/b/data", "tree/b", "tree"])
def test_nothing_is_removed_behind_a_link(tmp_path: Path, others: Path, folder: str) -> None:
    dataset(tmp_path / "t.lance")
    linked = tmp_path / "t.lance" / folder
    if linked.exists():
        linked.rename(tmp_path / "moved")
    linked.parent.mkdir(parents=True, exist_ok=True)
    linked.symlink_to(others)
    operations: list[Callable[[], object]] = [
        lambda: lance_sql.open(tmp_path / "t.lance").cleanup(NOW, delete_unverified=True),
        lambda: lance_sql.open(tmp_path / "t.lance").compact(),
        lambda: lance_sql.open(tmp_path / "t.lance").branches.delete("b"),
        lambda: lance_sql.open(tmp_path / "t.lance").branches.create("c"),
        lambda: lance_sql.sql(f"VACUUM '{tmp_path}/t.lance' RETAIN 0 SECONDS"),
    ]
    failures = 0
    for operation in operations:
        try:
            operation()
        except LanceError:
            failures += 1
        assert intact(others)
    assert failures
    store = LocalStore(tmp_path / "t.lance")
    for look in (store.list, store.names):
        with pytest.raises(StorageAccessError, match="symbolic link"):
            look(folder)
    with pytest.raises(StorageAccessError, match="symbolic link"):
        store.delete(f"{folder}/x.lance")
    assert intact(others)


def test_dropping_removes_links_not_what_they_lead_to(tmp_path: Path, others: Path) -> None:
    path = tmp_path / "t.lance"
    opened = dataset(path)
    (path / "_stats").symlink_to(others)
    drop_dataset(opened.snapshot)
    assert not path.exists()
    assert intact(others)


def test_what_is_no_dataset_is_not_dropped(tmp_path: Path, others: Path) -> None:
    path = tmp_path / "t.lance"
    dataset(path)
    link = tmp_path / "link.lance"
    link.symlink_to(path)
    with pytest.raises(UnsupportedFeatureError, match="symbolic link"):
        lance_sql.sql(f"DROP TABLE '{link}'")
    others.rename(path / "others")
    with pytest.raises(UnsupportedFeatureError, match="other files than the dataset"):
        lance_sql.sql(f"DROP TABLE '{path}'")
    assert intact(path / "others")
    assert lance_sql.open(link).count_rows() == 28


@pytest.mark.parametrize("name", ["../x", "..", "", "a/b", "a\\b"])
def test_a_new_name_is_no_path(tmp_path: Path, name: str) -> None:
    opened = dataset(tmp_path / "t.lance")
    with pytest.raises(UnsupportedFeatureError, match="without slashes"):
        rename_dataset(opened.snapshot, name)
    assert lance_sql.open(tmp_path / "t.lance").version == opened.version


def test_data_behind_a_link_is_read_when_allowed(tmp_path: Path) -> None:
    opened = dataset(tmp_path / "t.lance")
    (tmp_path / "t.lance/data").rename(tmp_path / "elsewhere")
    (tmp_path / "t.lance/data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ExternalAccessError, match="allow_external"):
        lance_sql.open(opened.uri).scan().to_table()
    for allowed in ("all", [tmp_path / "elsewhere"]):
        assert lance_sql.open(opened.uri, allow_external=allowed).scan().to_table().num_rows == 28
    with lance_sql.connect(allow_external="all") as session:
        assert session.sql(f"SELECT count(a) FROM '{opened.uri}'").fetchall() == [(28,)]


def test_links_within_the_dataset_are_no_matter(tmp_path: Path) -> None:
    opened = dataset(tmp_path / "t.lance")
    (tmp_path / "t.lance/data").rename(tmp_path / "t.lance/_moved")
    (tmp_path / "t.lance/data").symlink_to("_moved")
    assert lance_sql.open(opened.uri).scan().to_table().num_rows == 28


def with_base(opened: DatasetVersion, place: str) -> None:
    """Make the newest manifest refer to data files at `place`."""
    path = next(iter(sorted(Path(opened.uri, "_versions").glob("*.manifest"))))
    manifest, section, transaction = parse_manifest_file(path.read_bytes())
    fragments = tuple(
        dataclasses.replace(
            fragment, files=tuple(dataclasses.replace(file, base_id=7) for file in fragment.files)
        )
        for fragment in manifest.fragments
    )
    changed = dataclasses.replace(manifest, fragments=fragments, base_paths=(BasePath(7, place, True),))
    path.write_bytes(serialize_manifest_file(changed, index_section=section, transaction=transaction))


@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:9/x", "s3://bucket/x", "ftp://host/x", "memory://x", "a::memory://x"]
)
def test_base_paths_of_other_stores_are_refused(tmp_path: Path, place: str) -> None:
    opened = dataset(tmp_path / "t.lance")
    with_base(opened, place)
    with pytest.raises(ExternalAccessError, match="allow_external"):
        lance_sql.open(opened.uri).scan().to_table()
    with pytest.raises(ExternalAccessError, match="allow_external"):
        lance_sql.sql(f"SELECT * FROM '{opened.uri}'").fetchall()


def test_base_paths_on_the_same_disk(tmp_path: Path) -> None:
    opened = dataset(tmp_path / "t.lance")
    (tmp_path / "t.lance/data").rename(tmp_path / "data")
    with_base(opened, str(tmp_path))
    assert lance_sql.open(opened.uri).scan().to_table().num_rows == 28
    with pytest.raises(ExternalAccessError, match="allow_external"):
        lance_sql.open(opened.uri, allow_external="none").scan().to_table()
    for allowed in ([f"{tmp_path}/"], f"file://{tmp_path}", "all"):
        assert lance_sql.open(opened.uri, allow_external=allowed).scan().to_table().num_rows == 28
    with pytest.raises(ExternalAccessError, match="allow_external"):
        lance_sql.open(opened.uri, allow_external=["/nowhere/"]).scan().to_table()
    # Whatever is opened from it keeps the choice.
    kept = lance_sql.open(opened.uri, allow_external="none")
    with pytest.raises(ExternalAccessError, match="allow_external"):
        kept.restore(kept.version).scan().to_table()
    with_base(opened, "/nowhere\0")
    with pytest.raises(CorruptFileError):
        lance_sql.open(opened.uri).scan().to_table()


def special(kind: str, path: Path) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        os.chdir(path.parent)
        server = socket.socket(socket.AF_UNIX)
        server.bind(path.name)
        server.close()


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "device", "socket"])
@pytest.mark.parametrize(
    "pattern",
    [
        "_versions/*.manifest",
        "data/*.lance",
        "_deletions/*",
        "_indices/*/*",
        "_refs/tags/*",
        "_refs/branches/*",
    ],
)
def test_what_is_no_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    uri = dataset(tmp_path / "t.lance").uri
    for path in Path(uri).glob(pattern):
        path.unlink()
        special(kind, path)
    failures = 0
    for use in (
        lambda: lance_sql.open(uri).scan().to_table(),
        lambda: lance_sql.open(uri).scan(filter="a = 4").to_table(),
        lambda: lance_sql.open(uri).take([1]),
        lambda: lance_sql.open(uri, tag="t"),
        lambda: lance_sql.open(uri, branch="b"),
        lambda: lance_sql.open(uri).inspect.refs(),
        lambda: lance_sql.open(uri).compact(),
        lambda: lance_sql.sql(f"SELECT sum(a) FROM '{uri}'").fetchall(),
    ):
        try:
            use()
        except LanceError:
            failures += 1
    assert failures or pattern in ("_indices/*/*", "_refs/branches/*", "_refs/tags/*")


BAD_REFS = [
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"version": -1, "parentVersion": -1}',
    b'{"version": 1e999, "parentVersion": 1e999}',
    b'{"version": true, "parentVersion": true}',
    b'{"version": 18446744073709551616, "parentVersion": 18446744073709551616}',
    b'{"version": 1, "branch": 7, "parentVersion": 1, "parentBranch": 7}',
    b'{"version": 1, "createdAt": 7, "parentVersion": 1, "createAt": "x"}',
    b'{"version": 1, "createdAt": "\\ud800", "parentVersion": 1, "identifier": [1]}',
]


@pytest.mark.parametrize("content", BAD_REFS)
@pytest.mark.parametrize("folder", ["tags", "branches"])
def test_one_bad_reference_blocks_nothing(tmp_path: Path, folder: str, content: bytes) -> None:
    opened = dataset(tmp_path / "t.lance")
    for name in ("bad", "a%2F..%2Fb", "%00", "..", "\udcff"):
        Path(opened.uri, "_refs", folder, f"{name}.json").write_bytes(content)
    assert [tag.name for tag in opened.tags.list()] == ["t"]
    assert [branch.name for branch in opened.branches.list()] == ["b"]
    assert opened.inspect.refs().num_rows == 2
    opened.cleanup(NOW)
    assert lance_sql.open(opened.uri, tag="t").count_rows() == 28
    assert lance_sql.open(opened.uri, branch="b").count_rows() == 18
    names = opened.tags if folder == "tags" else opened.branches
    with pytest.raises(CorruptFileError):
        names.get("bad")
    names.delete("bad")
    opened.branches.delete("b")


def test_what_a_damaged_branch_refers_to_stays(tmp_path: Path) -> None:
    opened = dataset(tmp_path / "t.lance")
    opened.tags.delete("t")
    lance_sql.write(pa.table({"a": [1]}), opened.uri, "overwrite")
    (tmp_path / "t.lance/_refs/branches/b.json").write_bytes(b"{")
    lance_sql.open(opened.uri).cleanup(NOW, delete_unverified=True)
    assert lance_sql.open(f"{opened.uri}/tree/b").scan().to_table().num_rows == 18


def nested(kind: str, depth: int) -> pa.Array:
    kinds: dict[str, tuple[Callable[[pa.DataType], pa.DataType], Callable[[object], object]]] = {
        "list": (pa.list_, lambda value: [value]),
        "fixed": (lambda inner: pa.list_(inner, 1), lambda value: [value]),
        "struct": (lambda inner: pa.struct([("x", inner)]), lambda value: {"x": value}),
        "map": (lambda inner: pa.map_(pa.string(), inner), lambda value: [("k", value)]),
    }
    wrap, put = kinds[kind]
    values, type = 1, pa.int32()
    for _ in range(depth):
        values, type = put(values), wrap(type)  # type: ignore[assignment]
    return pa.array([values], type)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    ("kind", "most"), [("list", 30), ("fixed", 15), ("struct", 62), ("map", 31)], ids=lambda value: str(value)
)
def test_what_is_written_can_be_read(tmp_path: Path, kind: str, most: int, version: str) -> None:
    if kind != "map" or version == "2.2":
        table = pa.table({"a": nested(kind, most)})
        path = tmp_path / "most.lance"
        lance_sql.write(table, path, data_storage_version=version)
        assert lance_sql.open(path).scan().to_table().equals(table)
        assert lance_sql.sql(f"SELECT count(*) FROM '{path}' WHERE a IS NOT NULL").fetchall() == [(1,)]
    for depth in (most + 1, 2 * most, 150):
        with pytest.raises(LanceError):
            lance_sql.write(pa.table({"a": nested(kind, depth)}), tmp_path / "more.lance", "overwrite")
    plain = lance_sql.write(pa.table({"b": [1]}), tmp_path / "plain.lance", data_storage_version=version)
    with pytest.raises(LanceError):
        plain.add_columns(pa.schema([("a", nested(kind, most + 1).type)]))


def test_absurd_counts_are_not_believed(tmp_path: Path) -> None:
    opened = dataset(tmp_path / "t.lance")
    path = next(iter(sorted(Path(opened.uri, "_versions").glob("*.manifest"))))
    manifest, section, transaction = parse_manifest_file(path.read_bytes())
    many = manifest.fragments[0], dataclasses.replace(manifest.fragments[0], id=2**32 - 1)
    fragments = tuple(dataclasses.replace(fragment, physical_rows=2**64 - 1) for fragment in many)
    changed = dataclasses.replace(manifest, fragments=fragments)
    path.write_bytes(serialize_manifest_file(changed, index_section=section, transaction=transaction))
    for use in (
        lambda: lance_sql.open(opened.uri).count_rows(),
        lambda: lance_sql.sql(f"SELECT count(*) FROM '{opened.uri}'").fetchall(),
        lambda: opened.inspect.versions(),
    ):
        with pytest.raises(CorruptFileError, match="rows"):
            use()


@pytest.mark.parametrize("claimed", [2**27, 2**31, 2**32 - 1, 2**32])
def test_counts_that_do_not_fit_the_files_are_not_believed(tmp_path: Path, claimed: int) -> None:
    opened = dataset(tmp_path / "t.lance")
    path = next(iter(sorted(Path(opened.uri, "_versions").glob("*.manifest"))))
    manifest, section, transaction = parse_manifest_file(path.read_bytes())
    fragments = (dataclasses.replace(manifest.fragments[0], physical_rows=claimed),)
    changed = dataclasses.replace(manifest, fragments=fragments)
    path.write_bytes(serialize_manifest_file(changed, index_section=section, transaction=transaction))
    with pytest.raises(CorruptFileError, match=f"{claimed} rows"):
        lance_sql.open(opened.uri).count_rows()
    with pytest.raises(CorruptFileError, match=f"{claimed} rows"):
        lance_sql.sql(f"SELECT count(*) FROM '{opened.uri}'").fetchall()


def test_schemas_of_absurdly_many_fields(tmp_path: Path) -> None:
    messages = [file_pb2.Field(name=str(number), id=number, parent_id=-1) for number in range(100_001)]
    with pytest.raises(UnsupportedFeatureError, match="fields"):
        schema_from_messages(messages, {})


def test_hints_do_not_overwrite_what_shares_a_file(tmp_path: Path) -> None:
    """A hard link is a second name for a file that may belong to somebody else."""
    dataset(tmp_path / "d.lance")
    hint = tmp_path / "d.lance" / "_versions" / "latest_version_hint.json"
    os.link(hint, tmp_path / "other")
    before = (tmp_path / "other").read_bytes()
    changed = lance_sql.open(tmp_path / "d.lance").delete("a = 5")
    assert (tmp_path / "other").read_bytes() == before
    assert lance_sql.open(tmp_path / "d.lance").version == changed.version


def test_the_path_of_a_branch_is_not_the_dataset(tmp_path: Path) -> None:
    dataset(tmp_path / "d.lance")
    branch = tmp_path / "d.lance" / "tree" / "b"
    with lance_sql.connect(tmp_path) as session:
        for statement in (f"DROP TABLE '{branch}'", f"ALTER TABLE '{branch}' RENAME TO e"):
            with pytest.raises(LanceError, match="branch 'b'"):
                session.sql(statement)
        assert session.sql("SELECT count(*) > 0 FROM d").fetchall() == [(True,)]
