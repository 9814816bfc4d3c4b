"""Everything that has rows can be written: Arrow, data frames, Python values, files."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from lance_engine.errors import (
    DatasetNotFoundError,
    InvalidArgumentError,
    LanceError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.write.inputs import ACCEPTED, open_source

import lance_sql

TABLE = ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


class Stream:
    """An object that only knows the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


def parquet_file(tmp_path: Path) -> pq.ParquetFile:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    return pq.ParquetFile(tmp_path / "t.parquet")


def csv_reader(tmp_path: Path) -> Any:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n3,\n")
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    return pyarrow.csv.open_csv(tmp_path / "t.csv", convert_options=options)


SOURCES = {
    "table": lambda tmp_path: TABLE,
    "batch": lambda tmp_path: TABLE.to_batches()[0],
    "reader": lambda tmp_path: TABLE.to_reader(),
    "C stream": lambda tmp_path: Stream(),
    "list of batches": lambda tmp_path: [TABLE.slice(0, 1).to_batches()[0], TABLE.slice(1).to_batches()[0]],
    "generator of tables": lambda tmp_path: (TABLE.slice(row, 1) for row in range(3)),
    "chunked table": lambda tmp_path: pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)]),
    "pyarrow dataset": lambda tmp_path: pads.dataset(TABLE),
    "pyarrow scanner": lambda tmp_path: pads.dataset(TABLE).scanner(),
    "Parquet file": parquet_file,
    "CSV reader": csv_reader,
    "dict of lists": lambda tmp_path: TABLE.to_pydict(),
    "dict of arrays": lambda tmp_path: {"a": np.array([1, 2, 3]), "b": TABLE["b"]},
    "dict of a generator": lambda tmp_path: {"a": iter(range(1, 4)), "b": ("x", "y", None)},
    "list of dicts": lambda tmp_path: TABLE.to_pylist(),
    "generator of dicts": lambda tmp_path: iter(TABLE.to_pylist()),
    "rows that lack a key": lambda tmp_path: [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3}],
    "pandas": lambda tmp_path: TABLE.to_pandas(),
    "Polars": lambda tmp_path: pl.DataFrame(TABLE),
    "list of Polars frames": lambda tmp_path: [pl.DataFrame(TABLE.slice(0, 2)), pl.DataFrame(TABLE.slice(2))],
    "lazy Polars": lambda tmp_path: pl.LazyFrame(TABLE).filter(pl.col("a") < 100),
    "DuckDB relation": lambda tmp_path: duckdb.connect().from_arrow(TABLE).filter("a < 100"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_all_kinds_of_rows_are_written(name: str, tmp_path: Path) -> None:
    written = lance_sql.write(SOURCES[name](tmp_path), tmp_path / "t.lance")
    assert written.to_table().to_pylist() == TABLE.to_pylist()


def test_results_and_datasets_are_written(tmp_path: Path) -> None:
    first = lance_sql.write(lance_sql.sql("FROM ROWS"), tmp_path / "first.lance")
    second = lance_sql.write(first, tmp_path / "second.lance")
    third = lance_sql.write(tmp_path / "second.lance", tmp_path / "third.lance")
    assert [each.to_table() for each in (first, second, third)] == [TABLE] * 3


@pytest.mark.parametrize("name", ["dict of lists", "list of dicts", "pandas", "lazy Polars"])
def test_merge_takes_them_too(name: str, tmp_path: Path) -> None:
    dataset = lance_sql.write({"a": [1, 9], "b": ["old", "old"]}, tmp_path / "t.lance")
    merge = dataset.merge(SOURCES[name](tmp_path), "a")
    found = merge.when_matched_update_all().when_not_matched_insert_all().execute().to_table()
    assert found.sort_by("a").to_pydict() == {"a": [1, 2, 3, 9], "b": ["x", "y", None, "old"]}


def test_a_source_without_rows_has_a_schema(tmp_path: Path) -> None:
    table = TABLE.slice(0, 0)
    for empty in (table, [table], pl.LazyFrame(table), pd.DataFrame({"a": []})):
        schema, batches = open_source(empty)
        assert schema.names[0] == "a"
        assert sum(batch.num_rows for batch in batches) == 0


def test_vectors_and_types_of_python_values(tmp_path: Path) -> None:
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    written = lance_sql.write({"day": [datetime.date(2026, 1, 1)] * 3, "v": vectors}, tmp_path / "t.lance")
    assert written.schema.types == [pa.date32(), pa.list_(pa.float32(), 2)]
    assert written.to_table()["v"].to_pylist() == vectors.tolist()


def test_python_values_take_the_types_of_the_dataset(tmp_path: Path) -> None:
    lance_sql.write(pa.table({"x": pa.array([1.5]), "n": pa.array([1], pa.int8())}), tmp_path / "t.lance")
    appended = lance_sql.write([{"n": 2, "x": 3}], tmp_path / "t.lance", "append")
    assert appended.to_table().to_pydict() == {"x": [1.5, 3.0], "n": [1, 2]}


def test_the_index_of_a_data_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3]})
    filtered = lance_sql.write(frame[frame.a > 1], tmp_path / "filtered.lance")
    assert filtered.to_table().to_pydict() == {"a": [2, 3]}
    named = lance_sql.write(frame.set_index(pd.Index([7, 8, 9], name="id")), tmp_path / "named.lance")
    assert named.to_table().to_pydict() == {"a": [1, 2, 3], "id": [7, 8, 9]}


def write_parts(folder: Path, format: str) -> None:
    folder.mkdir()
    if format == "parquet":
        pq.write_table(TABLE.slice(0, 2), folder / "1.parquet")
        pq.write_table(TABLE.slice(2).select(["b", "a"]), folder / "2.parquet")
    elif format == "csv":
        (folder / "1.csv").write_text("a,b\n1,x\n2,y\n")
        (folder / "2.csv").write_text("b,a\n,3\n")
    elif format == "csv.gz":
        (folder / "1.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n3,\n"))
    else:
        (folder / "1.ndjson").write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')
        (folder / "2.ndjson").write_text('{"a": 3}\n')


@pytest.mark.parametrize("format", ["parquet", "csv", "csv.gz", "ndjson"])
def test_globs_and_directories(format: str, tmp_path: Path) -> None:
    write_parts(tmp_path / "parts", format)
    for number, source in enumerate([str(tmp_path / "parts" / f"*.{format}"), tmp_path / "parts"]):
        found = lance_sql.write(source, tmp_path / f"{number}.lance").to_table().to_pylist()
        assert [row | {"b": row["b"] or None} for row in found] == TABLE.to_pylist()


def test_the_first_file_decides_on_the_columns(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a\n1\n")
    (tmp_path / "2.csv").write_text("a,z\n1,2\n")
    with pytest.raises(SchemaMismatchError, match=r"'z'.*path: .*2\.csv.*The columns are those of 1\.csv"):
        lance_sql.write(tmp_path / "*.csv", tmp_path / "t.lance")
    (tmp_path / "2.csv").write_text("a\nword\n")
    with pytest.raises(SchemaMismatchError, match=r"invalid value 'word'.*path: .*2\.csv"):
        lance_sql.write(tmp_path / "*.csv", tmp_path / "t.lance")
    assert not (tmp_path / "t.lance").exists()


@pytest.mark.parametrize(
    ("pattern", "kind", "message"),
    [
        ("nothing.csv", DatasetNotFoundError, "The file does not exist"),
        ("*.nothing", DatasetNotFoundError, "No file matches the pattern"),
        (".", DatasetNotFoundError, "No files to read in the directory"),
        ("s3://bucket/x.parquet", UnsupportedFeatureError, "read_parquet"),
        ("notes.txt", UnsupportedFeatureError, "Cannot infer the format"),
        ("broken.parquet", SchemaMismatchError, "The file cannot be read"),
    ],
)
def test_paths_that_cannot_be_read(
    pattern: str, kind: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if pattern.startswith(("notes", "broken")):
        (tmp_path / pattern).write_text("not Parquet")
    with pytest.raises(kind, match=message):
        lance_sql.write(pattern, "t.lance")


@pytest.mark.parametrize(
    "value",
    [None, 5, b"bytes", object(), [1, 2], ["a"], pl.Series([1]), pa.array([1]), [TABLE, 3], pl.DataFrame],
    ids=lambda value: type(value).__name__,
)
def test_other_objects_are_refused_with_what_is_accepted(value: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        lance_sql.write(value, tmp_path / "t.lance")
    assert "Cannot write" in caught.value.message
    assert ACCEPTED in caught.value.remedy
    assert isinstance(caught.value, TypeError)
    assert not (tmp_path / "t.lance").exists()


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ({"a": 1}, InvalidArgumentError, r"must be a list.*column: a"),
        ({"a": "text"}, InvalidArgumentError, r"must be a list.*column: a"),
        ({1: [1]}, InvalidArgumentError, "names must be strings"),
        ({"a": [1], "b": [1, 2]}, SchemaMismatchError, r"different numbers of values \(a: 1, b: 2\)"),
        ({"a": [1, "x"]}, SchemaMismatchError, r"one Arrow type.*column: a"),
        ([{"a": 1}, 2], InvalidArgumentError, "Row 1 is not a dict but int"),
        ([{}], SchemaMismatchError, "no columns"),
        ([], SchemaMismatchError, "empty iterable"),
        (pd.DataFrame({"a": [1, "x"]}, dtype=object), SchemaMismatchError, "column a"),
    ],
    ids=repr,
)
def test_values_that_make_no_table(
    value: object, kind: type[LanceError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message):
        lance_sql.write(value, tmp_path / "t.lance")


MAPS = pa.table({"m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))})


def test_maps_choose_version_2_2(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    written = lance_sql.write(MAPS, uri)
    assert written.snapshot.manifest.storage_version == "2.2"
    assert lance_sql.write(MAPS, uri, "append").to_table().num_rows == 4
    assert lance_sql.write(TABLE, uri, "overwrite").snapshot.manifest.storage_version == "2.1"
    assert lance_sql.write(MAPS, uri, "overwrite").to_table()["m"].to_pylist() == MAPS["m"].to_pylist()
    with pytest.raises(UnsupportedTypeError, match=r'2\.1.*data_storage_version="2\.2"'):
        lance_sql.write(MAPS, tmp_path / "other.lance", data_storage_version="2.1")
