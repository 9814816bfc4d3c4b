"""Keys of extension types are those of the stored values, however the rows are read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.constraints import uniqueness
from lance_engine.constraints.candidates import possible_rows
from lance_engine.errors import CommitConflictError, ConstraintError

import lance_sql

KINDS = [
    pa.uuid(),
    pa.json_(),
    pa.opaque(pa.string(), "ENUM", "DuckDB"),
    pa.opaque(pa.binary(16), "hugeint", "DuckDB"),
]


def rows(kind: pa.ExtensionType, first: int, end: int, value: int) -> pa.Table:
    ids = [uuid.UUID(int=number) for number in range(first, end)]
    if kind.storage_type == pa.string():
        keys = pa.array([f'{{"a":{key.int}}}' for key in ids])
    else:
        keys = pa.array([key.bytes for key in ids], pa.binary(16))
    return pa.table({"k": keys.cast(kind), "v": [value] * len(ids)})


@pytest.mark.parametrize("many", [10, 5000])
@pytest.mark.parametrize("kind", KINDS, ids=["uuid", "json", "enum", "hugeint"])
def test_no_key_occurs_twice(tmp_path: Path, kind: pa.ExtensionType, many: int) -> None:
    dataset = lance_sql.write(rows(kind, 0, many, 1), tmp_path / "t.lance").add_key(["k"])
    with pytest.raises(ConstraintError, match=r"Duplicate key \"k: "):
        lance_sql.write(rows(kind, many - 1, 2 * many, 2), dataset.uri, "append")
    dataset = lance_sql.write(rows(kind, many, 2 * many, 2), dataset.uri, "append")
    source = rows(kind, 2 * many - 1, 2 * many + 1, 3)
    dataset.merge(source, "k").when_matched_update_all().when_not_matched_insert_all().execute()
    values = lance_sql.open(dataset.uri).to_table()["v"].to_pylist()
    assert sorted(values) == [1] * many + [2] * (many - 1) + [3] * 2


def test_a_message_shows_uuids_as_text(tmp_path: Path) -> None:
    dataset = lance_sql.write(rows(pa.uuid(), 7, 8, 1), tmp_path / "t.lance").add_key(["k"])
    with pytest.raises(ConstraintError, match=r"k: 00000000-0000-0000-0000-000000000007"):
        lance_sql.write(rows(pa.uuid(), 7, 8, 1), dataset.uri, "append")


def test_two_writers(tmp_path: Path) -> None:
    first = lance_sql.write(rows(pa.uuid(), 0, 1, 1), tmp_path / "t.lance").add_key(["k"])
    second = lance_sql.open(first.uri)
    for dataset in (first, second):
        merge = dataset.merge(rows(pa.uuid(), 1, 3, 2), "k")
        try:
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        except (CommitConflictError, ConstraintError):
            assert dataset is second
    assert lance_sql.open(first.uri).count_rows() == 3


@pytest.mark.parametrize("kind", [pa.uuid(), pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_few_rows_are_compared_with_new_keys(
    tmp_path: Path, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UUIDs with an index; numbers without one, unless a new one is NaN."""
    read = []

    def counted(*given: Any) -> Iterator[pa.RecordBatch]:
        for batch in possible_rows(*given):
            read.append(batch.num_rows)
            yield batch

    def table(*ids: int) -> pa.Table:
        if kind == pa.uuid():
            return rows(pa.uuid(), ids[0], ids[-1] + 1, 1)
        keys = np.array(ids, np.float64) / 64 if kind == pa.float16() else np.array(ids, np.float64)
        return pa.table({"k": pa.array(keys.astype(kind.to_pandas_dtype())), "v": [1] * len(ids)})

    monkeypatch.setattr(uniqueness, "possible_rows", counted)
    count = 2000 if kind == pa.float16() else 100_000
    held = lance_sql.write(table(*range(count)), tmp_path / "t.lance").add_key(["k"])
    if kind == pa.uuid():
        held.create_index("k", "btree")
    lance_sql.write(table(count, count + 1), held.uri, "append")
    assert sum(read) == 0
    with pytest.raises(ConstraintError, match="Duplicate key"):
        lance_sql.write(table(count // 2), held.uri, "append")
    if kind != pa.uuid():
        nan = pa.table({"k": pa.array(np.array([np.nan]).astype(kind.to_pandas_dtype())), "v": [1]})
        lance_sql.write(nan, held.uri, "append")
        with pytest.raises(ConstraintError, match=r"NaN|nan"):
            lance_sql.write(nan, held.uri, "append")
