"""Names and options from other libraries: they exist, or the error says what to use."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_sql
from lance_sql import other_names


@pytest.fixture
def dataset(tmp_path: Path) -> lance_sql.Dataset:
    return lance_sql.write({"id": list(range(8)), "name": ["a"] * 8}, tmp_path / "t.lance")


def test_columns_shape_and_head_are_those_of_data_frames(dataset: lance_sql.Dataset) -> None:
    assert dataset.columns == ["id", "name"]
    assert dataset.shape == (8, 2)
    assert dataset.delete("id = 1").shape == (7, 2)
    assert dataset.head().num_rows == 5
    assert pickle.loads(pickle.dumps(dataset)).shape == copy.copy(dataset).shape == (8, 2)


@pytest.mark.parametrize("kind", ["PACKAGE", "SPARK", "DATASET", "CONNECTION", "RESULT"])
def test_every_listed_name_is_a_member_of_ours_or_its_error_names_another(
    dataset: lance_sql.Dataset, kind: str
) -> None:
    with lance_sql.connect() as connection:
        owners = {
            "PACKAGE": lance_sql,
            "SPARK": lance_sql.spark,
            "DATASET": dataset,
            "CONNECTION": connection,
            "RESULT": connection.sql("SELECT 1"),
        }
        for name, instead in getattr(other_names, kind).items():
            if f"lance_sql.{name}" in sys.modules:
                continue  # an imported module
            same = re.fullmatch(r"(ds|con|result)\.(\w+)(\(\))?", instead)
            if same is not None:
                assert getattr(owners[kind], name) == getattr(owners[kind], same.group(2))
                assert name not in dir(owners[kind])
                continue
            with pytest.raises(AttributeError) as caught:
                getattr(owners[kind], name)
            assert instead in str(caught.value)
            assert not hasattr(owners[kind], name)


@pytest.mark.parametrize("method", ["to_table", "to_batches", "scanner", "head", "count_rows"])
@pytest.mark.parametrize("option", other_names.SCAN_OPTIONS)
def test_options_that_would_be_ignored_are_refused(
    dataset: lance_sql.Dataset, method: str, option: str
) -> None:
    if method == "to_table" and option in ("limit", "offset"):
        return  # obeyed
    if method == "scanner":
        assert dataset.scanner(batch_size=3, use_threads=False).to_table().num_rows == 8
    with pytest.raises(lance_sql.LanceError, match=f"Unknown option '{option}'.*Use"):
        getattr(dataset, method)(**{option: 1})


def test_habits_that_work(dataset: lance_sql.Dataset, tmp_path: Path) -> None:
    for read in (dataset.to_table, dataset.to_pandas, dataset.to_polars):
        rows = pa.table(read(["id"], "id > 1", limit=2, offset=1))
        assert rows["id"].to_pylist() == [3, 4]
    result = lance_sql.sql(f"SELECT id FROM '{dataset.uri}' WHERE id < 2")
    assert lance_sql.sql("SELECT 1 WHERE false")
    result.write_parquet(tmp_path / "x.parquet")
    result.write_csv(str(tmp_path / "x.csv"))
    for name in ("x.parquet", "x.csv"):
        assert lance_sql.sql(f"FROM '{tmp_path / name}'").fetchall() == [(0,), (1,)]
    assert dataset.scanner(["id"], "id = 3").to_pandas()["id"].tolist() == [3]


@pytest.mark.parametrize(
    ("method", "option", "instead"),
    [
        *((method, "flter", "filter") for method in ("to_table", "to_batches", "scanner", "count_rows")),
        ("head", "num_row", "num_rows"),
        ("scanner", "blob_handling", "columns, filter, batch_size"),
        ("scan", "where", "filter"),
        ("delete", "filter", "where"),
        ("nearest", "limit", "k"),
        ("search", "top_k", "k"),
        ("take", "indices", "row_ids"),
    ],
)
def test_options_by_another_name(dataset: lance_sql.Dataset, method: str, option: str, instead: str) -> None:
    says = rf"^Unknown option '{option}' of {method}\(\)\. (Did you mean '{instead}'\?|It has {instead})$"
    with pytest.raises(lance_sql.LanceError, match=says):
        getattr(dataset, method)(**{option: 1})


def test_a_type_error_of_the_callers_own_function_stays(dataset: lance_sql.Dataset) -> None:
    def values() -> None:
        raise AssertionError

    with pytest.raises(TypeError, match=r"values\(\) takes 0"):
        dataset.update({"id": values}, where="id = 1")


def test_the_name_of_the_dataset_module_is_no_function() -> None:
    script = "import lance_sql\ntry: lance_sql.dataset\nexcept AttributeError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "lance_sql.open(path)" in done.stdout
    module: Any = sys.modules["lance_sql.dataset"]
    with pytest.raises(TypeError, match=r"lance_sql\.open"):
        module("x.lance")


@pytest.mark.parametrize("name", ["x.parquet", "x.CSV", "x.json", "x.feather", "x.ndjson", "x.duckdb"])
@pytest.mark.parametrize("mode", ["create", "overwrite"])
def test_a_dataset_does_not_get_the_name_of_a_file(tmp_path: Path, name: str, mode: Any) -> None:
    with pytest.raises(lance_sql.LanceError, match=r"\.lance.*COPY"):
        lance_sql.write({"a": [1]}, tmp_path / name, mode)
    assert not list(tmp_path.iterdir())


def test_a_clone_and_a_copy_do_not_get_the_name_of_a_file(dataset: lance_sql.Dataset, tmp_path: Path) -> None:
    with pytest.raises(lance_sql.LanceError, match="cannot be named"):
        dataset.shallow_clone(str(tmp_path / "x.parquet"))
    for engine in ("duckdb", "datafusion"):
        with pytest.raises(lance_sql.LanceError, match="cannot be named"):
            lance_sql.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path}/x.csv' (FORMAT lance)", engine).arrow()
    assert [path.name for path in tmp_path.iterdir()] == ["t.lance"]


def test_an_existing_dataset_keeps_its_odd_name(tmp_path: Path) -> None:
    dataset = lance_sql.write({"a": [1]}, tmp_path / "x.lance")
    moved = Path(dataset.uri).rename(tmp_path / "x.csv")
    assert lance_sql.write({"a": [2]}, moved, "append").count_rows() == 2
    assert lance_sql.write({"a": [3]}, moved, "overwrite").count_rows() == 1


def test_data_and_path_in_the_wrong_order(tmp_path: Path) -> None:
    with pytest.raises(lance_sql.LanceError, match="The data comes first"):
        lance_sql.write(str(tmp_path / "x.lance"), pa.table({"a": [1]}))  # type: ignore[arg-type]


@pytest.mark.parametrize("clause", ["VERSION AS OF 1", "TIMESTAMP AS OF '2026-01-01'"])
def test_clauses_of_other_engines_name_ours(dataset: lance_sql.Dataset, clause: str) -> None:
    with pytest.raises(lance_sql.SqlError, match=r"Write AT \(VERSION => 3\)"):
        lance_sql.sql(f"SELECT * FROM '{dataset.uri}' {clause}")


def test_a_column_of_lists_says_how_it_becomes_one_of_vectors(tmp_path: Path) -> None:
    dataset = lance_sql.write({"v": [[0.0, 1.0], [1.0, 0.0]]}, tmp_path / "v.lance")
    with pytest.raises(
        lance_sql.LanceError, match=r"alter_column\('v', type=pa.list_\(pa.float32\(\), n\)\)"
    ):
        dataset.nearest("v", [0.0, 1.0], k=1)
    dataset = dataset.alter_column("v", type=pa.list_(pa.float32(), 2))
    assert dataset.nearest("v", [0.0, 1.0], k=1)["v"].to_pylist() == [[0.0, 1.0]]


def test_a_column_by_name_is_one_error(dataset: lance_sql.Dataset) -> None:
    with pytest.raises(lance_sql.LanceError, match="to_table") as caught:
        dataset["name"]  # type: ignore[call-overload]
    assert caught.value.__context__ is None


def test_a_missing_package_is_named_with_its_extra() -> None:
    script = """if True:
        import importlib, sys
        for name in sys.argv[1:]:
            sys.modules[{"huggingface": "datasets", "otel": "opentelemetry"}.get(name, name)] = None
            try:
                importlib.import_module(f"lance_sql.{name}")
            except ImportError as error:
                print(error)
    """
    names = ["torch", "dask", "huggingface", "ray", "daft", "otel", "polars"]
    done = subprocess.run([sys.executable, "-c", script, *names], capture_output=True, text=True, check=True)
    assert re.findall(r"pip install 'lance-sql\[(\w+)\]'", done.stdout) == names
