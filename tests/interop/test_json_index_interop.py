"""Indices on JSON that pylance wrote: which filters they serve, and the same rows as a scan."""

import json

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.index import json_values
from lance_engine.index.cache import CACHE

import lance_sql
from tests.support.indices import indices_serving

ROWS = 6000


def document(row: int) -> str | None:
    if row % 10 == 0:
        return None
    values = {"int": row % 1500, "text": f"n{row % 700}", "real": row / 4, "inner": {"int": row % 900}}
    if row % 7:
        values["flag"] = row % 1000 == 1
    return json.dumps(values)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("json") / "t")
    docs = pa.array([document(row) for row in range(ROWS)], pa.json_())
    ds = lance.write_dataset(pa.table({"id": range(ROWS), "j": docs}), path, max_rows_per_file=ROWS // 2)
    for number, (key, kind) in enumerate(
        [
            ("int", "btree"),
            ("$.text", "bitmap"),
            ("real", "btree"),
            ("$.inner.int", "btree"),
            ("flag", "btree"),
        ]
    ):
        parameters = {"target_index_type": kind, "path": key}
        ds.create_scalar_index("j", IndexConfig("json", parameters), name=f"j{number}")
        ds = lance.dataset(path)
    more = pa.table({"id": [ROWS, ROWS + 1], "j": pa.array(['{"int": 7}', '{"int": 8}'], pa.json_())})
    lance.write_dataset(more, path, mode="append")
    lance.dataset(path).delete("id % 97 = 7")
    return path


@pytest.mark.parametrize(
    ("filter", "index"),
    [
        ("json_get_int(j, 'int') = 7", "j0"),
        ("json_get_int(j, 'int') IN (7, 9, 11)", "j0"),
        ("json_get_int(j, 'int') > 1495", "j0"),
        ("json_get_int(j, 'int') <= 7 AND id > 100", "j0"),
        ("json_get_string(j, 'text') = 'n3'", "j1"),
        ("json_get_string(j, 'text') = 'nothing'", "j1"),
        ("json_get_float(j, 'real') < 9.5", "j2"),
        ("json_get_bool(j, 'flag') = true", "j4"),
        ("json_get_int(j, 'int') = 7 OR json_get_float(j, 'real') = 2.5", "j2"),
    ],
)
def test_the_same_rows_as_without(path, filter, index):
    assert index in dict(indices_serving(path, filter))


@pytest.mark.parametrize(
    "filter",
    [
        "json_get_float(j, 'int') = 7.0",  # of another type than the index
        "json_get_int(j, 'other') = 7",
        "json_get_int(j, 'int') IS NULL",
    ],
)
def test_filters_that_are_scanned(path, filter):
    assert not indices_serving(path, filter)


def test_paths_and_keys(path):
    ds = lance_sql.open(path)
    by_key = ds.to_table(columns=["id"], filter="json_get_int(j, 'int') IN (7, 9)")
    assert ds.to_table(columns=["id"], filter="json_get_int(j, '$.int') IN (7, 9)").equals(by_key)
    # pylance follows paths only where an index has them.
    inner = DatasetVersion.open(path).scan(["id"], filter="json_get_int(j, '$.inner.int') = 5")
    theirs = lance.dataset(path).to_table(columns=["id"], filter=str(inner.filter))
    assert inner.to_table()["id"].to_pylist() == sorted(theirs["id"].to_pylist())
    assert [use.name for use in inner.metrics.indices] == ["j3"]
    assert inner.to_table().num_rows > 3


def test_inspected(path):
    ds = lance_sql.open(path)
    assert ds.index_statistics("j1")["segments"][0]["distinct_values"] == 631
    health = ds.inspect.index_health().to_pylist()
    assert {row["name"]: row["unindexed_rows"] for row in health}["j0"] == 2
    assert ds.verify().num_rows == 0


def test_damaged_details(path, monkeypatch):
    monkeypatch.setattr(json_values, "_TARGETS", {})
    filter = "json_get_int(j, 'int') = 7"
    CACHE.clear()
    assert not indices_serving(path, filter)
    monkeypatch.undo()
    CACHE.clear()
    monkeypatch.setattr(json_values, "index_pb2", _Damaged)
    with pytest.raises(CorruptFileError, match="drop_index"):
        lance_sql.open(path).to_table(filter=filter)


class _Damaged:
    class JsonIndexDetails:
        def ParseFromString(self, data):  # noqa: N802 - the name of protobuf
            raise json_values.DecodeError("damaged")
