"""Locations in a received dataset that lead out of it: nothing outside is read, written or removed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import LanceError
from lance_engine.format.pb import table_pb2
from lance_engine.scan.blobs import DESCRIPTOR, BlobKind, BlobReader
from structured import prepare, rewritten
from whole_datasets import reads, writes

import lance_sql

#: In the values of another dataset, which nobody may see.
PRIVATE = "private text"
#: Where that dataset is, seen from a data file, an index and the root, and other texts that may lead there.
LOCATIONS = (
    "../../private.lance/data/{file}",
    "{root}/private.lance/data/{file}",
    "file://{root}/private.lance/data/{file}",
    "%2e%2e/%2e%2e/private.lance/data/{file}",
    "x/../../../private.lance/data/{file}",
    "..\\..\\private.lance\\data\\{file}",
    "../../private.lance/data/{file}\0",
    "link/{file}",
    "../../private.lance\n/data/{file}",
    "/etc/passwd",
    "file:///etc/passwd",
    "s3://bucket/{file}",
    "http://169.254.169.254/latest/meta-data",
    "memory://x/{file}",
    "~/x",
    "..",
    "",
)


def _table(text: str) -> pa.Table:
    return pa.table({"a": range(40), "s": [text] * 40, "f": pa.array([0.5] * 40, pa.float32())})


def _selected(dataset: Path) -> object:
    with lance_sql.connect(allow_external="none") as session:
        return session.sql(f"SELECT * FROM '{dataset}'").fetchall()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("places")
    for name, text in (("t.lance", "open text"), ("private.lance", PRIVATE)):
        dataset = lance_sql.write(_table(text), root / name)
        dataset.create_index("a").create_index("s", "bitmap").delete("a = 7")
        dataset.tags.create("t")
        dataset.branches.create("b")
    shutil.copytree(root / "t.lance/_deletions", root / "private.lance/_deletions", dirs_exist_ok=True)
    prepare(root)  # sizes of files would give others away
    (root / "t.lance/data/link").symlink_to(root / "private.lance/data")
    return root


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _in_manifest(edit: Callable[[table_pb2.Manifest, table_pb2.IndexSection, str], object]) -> Any:
    """Changes the newest manifest."""

    def poison(dataset: Path, place: str) -> None:
        path = min((dataset / "_versions").glob("*.manifest"))

        def change(parts: dict[str, Any]) -> None:
            section = table_pb2.IndexSection.FromString(parts["index_section"])
            edit(parts["manifest"], section, place)
            parts["index_section"] = section

        path.write_bytes(rewritten(path.read_bytes(), change))

    return poison


def _data_file(manifest: table_pb2.Manifest, _: table_pb2.IndexSection, place: str) -> None:
    manifest.fragments[0].files[0].path = place


def _index_uuid(_: table_pb2.Manifest, section: table_pb2.IndexSection, place: str) -> None:
    for index in section.indices:
        index.uuid.uuid = place.encode()


def _index_file(_: table_pb2.Manifest, section: table_pb2.IndexSection, place: str) -> None:
    for index in section.indices:
        index.files.add(path=place, size_bytes=1000)


def _base(manifest: table_pb2.Manifest, section: table_pb2.IndexSection, place: str) -> None:
    """All files are in another place, which is the folder of the location."""
    folder = place.replace("/data/{file}", "").rpartition("/data/")[0] or place
    manifest.base_paths.add(id=1, path=folder, is_dataset_root=True)
    manifest.fragments[0].files[0].base_id = 1
    manifest.fragments[0].files[0].path = place.rpartition("/")[2]
    manifest.fragments[0].deletion_file.base_id = 1
    for index in section.indices:
        index.base_id = 1


def _transaction(manifest: table_pb2.Manifest, _: table_pb2.IndexSection, place: str) -> None:
    manifest.transaction_file = place
    manifest.ClearField("transaction_section")


def _branch(manifest: table_pb2.Manifest, _: table_pb2.IndexSection, place: str) -> None:
    manifest.branch = place


def _refs(dataset: Path, place: str) -> None:
    """Every text of a tag and a branch."""
    for path in (dataset / "_refs").rglob("*.json"):
        value = json.loads(path.read_text())
        path.write_text(json.dumps(value | {key: place for key in value if isinstance(value[key], str)}))
        path.with_name("more.json").write_text(json.dumps(value | {"branch": place, "parentBranch": place}))


#: What changes, and what uses it.
POISONS: dict[str, tuple[Callable[[Path, str], None], tuple[str, ...]]] = {
    "data file": (_in_manifest(_data_file), ("scan", "take", "sql", "verify", "compact", "scan", "cleanup")),
    "uuid of an index": (_in_manifest(_index_uuid), ("filters", "verify", "optimize", "cleanup")),
    "file of an index": (_in_manifest(_index_file), ("filters", "indices", "cleanup")),
    "base path": (_in_manifest(_base), ("scan", "take", "sql", "filters", "compact", "scan", "cleanup")),
    "transaction": (_in_manifest(_transaction), ("transactions", "append", "cleanup")),
    "branch": (_in_manifest(_branch), ("scan", "refs", "clone", "append", "cleanup")),
    "tags and branches": (_refs, ("refs", "branch changes", "tag changes", "cleanup")),
}


@pytest.mark.parametrize("poison", POISONS)
def test_places_in_metadata(
    sound: Path, tmp_path: Path, poison: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default base paths may be on the same disk, which a dataset that is received may not use."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    shutil.copytree(sound / "private.lance", tmp_path / "private.lance")
    file = next((tmp_path / "private.lance/data").iterdir()).name
    before = _contents(tmp_path / "private.lance")
    refused = 0
    real_open = lance_sql.open
    monkeypatch.setattr(lance_sql, "open", lambda uri, **kw: real_open(uri, allow_external="none", **kw))
    for location in LOCATIONS:
        place = location.format(root=tmp_path, file=file)
        received = tmp_path / "t.lance"
        shutil.copytree(sound / "t.lance", received, symlinks=True)
        (received / "data/link").unlink()
        (received / "data/link").symlink_to(tmp_path / "private.lance/data")
        change, uses = POISONS[poison]
        change(received, place)
        calls = reads(str(received)) | writes(str(received)) | {"sql": partial(_selected, received)}
        for use in uses:
            try:
                shown = calls[use]()
                text = str(shown.to_pylist() if isinstance(shown, pa.Table) else shown)
            except LanceError as error:
                refused += 1
                text = str(error)
                assert "\0" not in text, (place, use)
            assert PRIVATE not in text, (place, use)
        assert _contents(tmp_path / "private.lance") == before, place
        shutil.rmtree(received)
        shutil.rmtree(f"{received}.clone", ignore_errors=True)
        assert {path.name for path in tmp_path.iterdir()} == {"private.lance"}, place
    # Names in the list of files of an index are only looked up, nothing opens them.
    assert refused or poison == "file of an index"


def test_what_is_allowed_is_read(sound: Path, tmp_path: Path) -> None:
    """The same base path and the same link, where the caller allows them: there is something to see."""
    file = next((sound / "private.lance/data").iterdir()).name
    for poison, location, allowed in (
        ("base path", "{root}/private.lance/data/{file}", "same-store"),
        ("data file", "link/{file}", "all"),
    ):
        received = tmp_path / f"{poison}.lance"
        shutil.copytree(sound / "t.lance", received, symlinks=True)
        POISONS[poison][0](received, location.format(root=sound, file=file))
        opened = lance_sql.open(received, allow_external=allowed)
        assert PRIVATE in str(opened.scan().to_table().to_pylist())


@pytest.mark.parametrize("base", [None, 1])
def test_places_of_blobs(sound: Path, base: int | None, tmp_path: Path) -> None:
    """Blobs may be anywhere by name only: a dataset that does not ask has none outside of it."""
    shutil.copytree(sound / "t.lance", tmp_path / "t.lance", symlinks=True)
    file = next((sound / "private.lance/data").iterdir()).name
    if base is not None:
        POISONS["base path"][0](tmp_path / "t.lance", f"{tmp_path}/t.lance/data/x")
    snapshot = DatasetVersion.open(str(tmp_path / "t.lance")).snapshot
    reader = BlobReader(snapshot, snapshot.fragments[0].files[0])
    for location in LOCATIONS:
        place = location.format(root=sound, file=file)
        row = {"kind": BlobKind.EXTERNAL, "position": 0, "size": 0, "blob_id": base or 0, "blob_uri": place}
        with pytest.raises(LanceError) as caught:
            reader.read(pa.array([row], DESCRIPTOR))
        assert "\0" not in str(caught.value)


@pytest.mark.parametrize("kind", [BlobKind.INLINE, BlobKind.PACKED, BlobKind.DEDICATED, 9, 255])
@pytest.mark.parametrize(("position", "size"), [(0, 2**63), (2**63, 1), (2**64 - 1, 2**64 - 1), (10**6, 8)])
def test_ranges_of_blobs(sound: Path, kind: int, position: int, size: int) -> None:
    snapshot = DatasetVersion.open(str(sound / "t.lance")).snapshot
    reader = BlobReader(snapshot, snapshot.fragments[0].files[0])
    row = {"kind": kind, "position": position, "size": size, "blob_id": 2**32 - 1, "blob_uri": "../x"}
    with pytest.raises(LanceError):
        reader.read(pa.array([row], DESCRIPTOR))
