"""A writer that is killed before or after any of its storage calls, on every kind of storage.

Readers see the version before or the one after, whole; the next writer carries on; cleaning up removes the
rest.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import DatasetNotFoundError
from lance_engine.io import Store, open_store
from lance_engine.io.dynamodb import DynamoDBManifestStore
from lance_engine.io.external import ManifestEntry, ManifestStore
from lance_engine.io.sqlite import SQLiteManifestStore
from lance_engine.write.dataset import write_dataset

if TYPE_CHECKING:
    from conftest import ObjectStore

ROOT = Path(__file__).parents[2]
BEFORE = [i for i in range(20) if i != 5]
AFTER: dict[str, list[int]] = {
    "create": [100, 101],
    "append": [*BEFORE, 100, 101],
    "overwrite": [100, 101],
    "delete": [i for i in BEFORE if i not in (3, 12)],
    "update": sorted([*(i for i in BEFORE if i not in (3, 12)), 1003, 1012]),
    "compact": BEFORE,
    "branch": BEFORE,
}
# A database is asked for every manifest, an object store for every file: the rest of these takes longer.
QUICK: dict[str, set[str]] = {
    "local": {"append", "compact"},
    "sqlite": {"append"},
    "s3": {"append"},
    "ddb": set(),
}


class Child:
    """The process that is killed repeatedly."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", ROOT / "tests/support/crash_child.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def run(self, **request: Any) -> str:
        """The name of the call at which it died, or ``survived``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A dataset of two fragments, of which a row is deleted."""
    path = tmp_path_factory.mktemp("crash") / "t.lance"
    write_dataset(pa.table({"id": range(20)}), path, max_rows_per_file=10)
    DatasetVersion.open(str(path)).delete("id = 5")
    store = open_store(path)
    return {name: store.read(name) for name in store.list("")}


class Place:
    """Where copies of a dataset are made to be changed."""

    def __init__(
        self,
        locate: Callable[[str], str],
        options: dict[str, Any] | None = None,
        manifests: ManifestStore | None = None,
        plain: Callable[[str], Store] | None = None,
    ) -> None:
        self._locate, self.options, self._manifests = locate, options, manifests
        self._plain = plain or (lambda name: open_store(locate(name), options))

    def copy(self, files: dict[str, bytes]) -> tuple[str, Store]:
        name = f"{uuid.uuid4().hex}.lance"
        store = self._plain(name)
        for path, content in files.items():
            store.put(path, content)
            if self._manifests is not None and path.endswith(".manifest"):
                version = 2**64 - 1 - int(path.rpartition("/")[2].removesuffix(".manifest"))
                entry = ManifestEntry(version, f"{name}/{path}", len(content))
                self._manifests.add(name, entry)
        return self._locate(name), store


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "local":
            return Place(lambda name: str(tmp_path / name))
        case "sqlite":
            options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
            manifests = SQLiteManifestStore(str(tmp_path / "manifests.db"))
            locate = lambda name: str(tmp_path / name)  # noqa: E731
            return Place(locate, options, manifests, lambda name: open_store(locate(name)))
        case "s3":
            store: ObjectStore = request.getfixturevalue("object_store")
            return Place(store.s3, store.options)
        case "ddb":
            store = request.getfixturevalue("object_store")
            table = DynamoDBManifestStore(store.table, store.options)
            plain = lambda name: open_store(store.s3(name), store.options)  # noqa: E731
            return Place(store.ddb, store.options, table, plain)
    raise AssertionError(request.param)


CASES = [
    pytest.param(
        kind,
        operation,
        marks=() if operation in quick else (pytest.mark.slow, pytest.mark.timeout(1200)),
        id=f"{kind}-{operation}",
    )
    for kind, quick in QUICK.items()
    for operation in AFTER
]


@pytest.mark.parametrize(("place", "operation"), CASES, indirect=["place"])
def test_killed_at_every_storage_call(
    child: Child, files: dict[str, bytes], place: Place, operation: str
) -> None:
    calls: list[str] = []
    outcomes: set[bool] = set()
    # Storage is the same after one call and before the next. Dying before or after a call that only reads
    # says nothing new either.
    for at, when in [(1, "before"), *((at, "after") for at in range(1, 200))]:
        uri, plain = place.copy({} if operation == "create" else files)
        answer = child.run(operation=operation, uri=uri, options=place.options, at=at, when=when)
        assert not answer.startswith("failed"), answer
        survived = answer == "survived"
        calls.append(answer)
        outcomes.add(_check(uri, plain, place.options, operation, survived))
        if survived:
            break
    assert survived
    assert {"put_if_absent", "link", "add"} & set(calls)
    if operation not in ("compact", "branch"):
        assert outcomes == {True, False}


def _check(uri: str, plain: Store, options: dict[str, Any] | None, operation: str, survived: bool) -> bool:
    """Check everything; returns whether the change was made."""
    try:
        dataset = DatasetVersion.open(uri, storage_options=options)
    except DatasetNotFoundError:
        assert operation == "create"
        rows = None
    else:
        rows = _ids(dataset)
    changed = rows == AFTER[operation]
    assert changed or rows == (None if operation == "create" else BEFORE)
    assert changed or not survived
    if operation != "create":
        assert _ids(DatasetVersion.open(uri, 2, storage_options=options)) == BEFORE
    # The next writer carries on, the same operation included.
    mode = "create" if rows is None else "append"
    dataset = DatasetVersion(write_dataset(pa.table({"id": [500]}), uri, mode, storage_options=options))
    assert _ids(dataset) == sorted([*(rows or []), 500])
    if operation == "branch":
        if not any(branch.name == "dev" for branch in dataset.branches.list()):
            dataset.branches.create("dev", 2)
        dataset.branches.delete("dev")
    # Only what the latest version needs is left, by name.
    dataset.cleanup(datetime.timedelta(0), delete_unverified=True)
    assert _ids(DatasetVersion.open(uri, storage_options=options)) == _ids(dataset)
    manifest = dataset.snapshot.manifest
    needed = {f"data/{file.path}" for fragment in manifest.fragments for file in fragment.files}
    needed |= {
        f"_deletions/{fragment.deletion_file.file_name(fragment.id)}"
        for fragment in manifest.fragments
        if fragment.deletion_file is not None
    }
    needed |= {
        f"_versions/{2**64 - 1 - manifest.version}.manifest",
        f"_transactions/{manifest.transaction_file}",
        "_versions/latest_version_hint.json",
    }
    assert set(plain.list("")) | {"_versions/latest_version_hint.json"} == needed
    return changed


def _ids(dataset: DatasetVersion) -> list[int]:
    return sorted(dataset.scan().to_table()["id"].to_pylist())
