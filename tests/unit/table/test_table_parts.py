"""Small parts of tables: what is read ahead, in which order, and what is passed on."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import DatasetNotFoundError
from lance_engine.format.operations import Append, MapUpdate, UpdateConfig
from lance_engine.format.pb import table_pb2
from lance_engine.format.row_ids import encode_row_ids
from lance_engine.io import MemoryStore
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.table import replaced
from lance_engine.table.commit import commit
from lance_engine.table.conflicts import Verdict, check
from lance_engine.table.constraints import Key
from lance_engine.table.defaults import _next_row_id
from lance_engine.table.deletions import of_fragments
from lance_engine.table.snapshot import Snapshot
from lance_engine.write import write_dataset


def test_keys_have_the_names_of_sql() -> None:
    assert Key("k", ("a",), (0,), is_primary=True).kind == "PRIMARY KEY"
    assert Key("k", ("a",), (0,)).kind == "UNIQUE"


def test_deletion_files_that_are_not_known_are_read_ahead() -> None:
    read: list[Any] = []
    fragments = [SimpleNamespace(id=number, deletion_file=file) for number, file in ((0, "f"), (1, "f"), (2, None))]  # fmt: skip  # noqa: E501
    snapshot: Any = SimpleNamespace(is_local=False, _deleted={1: None}, _deleted_offsets=read.append)
    Snapshot.fetch_deletions(snapshot, fragments)  # type: ignore[arg-type]
    assert read == fragments[:1]
    snapshot.is_local = True
    Snapshot.fetch_deletions(snapshot, fragments)  # type: ignore[arg-type]
    assert len(read) == 1


def test_two_remote_deletion_files_are_written_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=20)

    def work(fragment: int) -> int:
        both.wait()
        return fragment

    assert of_fragments(work, [3, 4], is_local=False) == [3, 4]
    here = threading.get_ident()
    assert of_fragments(lambda _: threading.get_ident(), [3, 4], is_local=True) == [here, here]


def test_the_next_row_id_is_after_those_of_the_fragment() -> None:
    fragment: Any = SimpleNamespace(row_ids=b"", physical_rows=3)
    assert _next_row_id(fragment) == 0
    fragment.row_ids = encode_row_ids(pa.array([4, 9, 2], pa.uint64()).to_numpy())
    assert _next_row_id(fragment) == 10
    empty = table_pb2.U64Segment(range=table_pb2.U64Segment.Range(start=0, end=0))
    fragment.row_ids, fragment.physical_rows = table_pb2.RowIdSequence(segments=[empty]), 0
    fragment.row_ids = fragment.row_ids.SerializeToString()
    assert _next_row_id(fragment) == 0


def test_metadata_of_the_schema_and_of_a_field_are_apart() -> None:
    schema, field = UpdateConfig(schema_metadata=MapUpdate({})), UpdateConfig(fields={1: MapUpdate({})})
    assert check(schema, field) is check(field, schema) is Verdict.COMPATIBLE
    assert check(schema, schema) is Verdict.INCOMPATIBLE


def test_a_dataset_of_which_nothing_is_left_was_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = write_dataset(pa.table({"a": [1]}), MemoryStore())
    dataset, empty = DatasetVersion(snapshot), MemoryStore()
    with pytest.raises(DatasetNotFoundError, match="No Lance dataset to commit to"):
        replaced.check_not_replaced(dataset.snapshot, empty, NamingScheme.V2)
    # Versions are there, but the one that was read has been cleaned up.
    monkeypatch.setattr(replaced, "find_latest", lambda store: (2, NamingScheme.V2))
    replaced.check_not_replaced(dataset.snapshot, empty, NamingScheme.V2)


def test_commits_are_validated_against_the_newest_version_and_what_others_did() -> None:
    store = MemoryStore()
    rows = pa.table({"a": [1]})
    first = write_dataset(rows, store)
    write_dataset(rows, store, "append")
    seen: list[Any] = []
    commit(
        store,
        Append(tuple(first.fragments)),
        read_version=1,
        validate=lambda newest, others: seen.append((newest.version, len(others))),
    )
    assert seen == [(2, 1)]
