"""Arguments of the wrong type raise an error of the library that says what to pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_engine.errors import (
    DatasetNotFoundError,
    InvalidArgumentError,
    LanceError,
    SchemaMismatchError,
)

import lance_sql
from lance_sql.errors import SqlError, TableNotFoundError

TABLE = pa.table({"id": [1, 2], "price": [1.0, 2.0], "i": [5, 6], "d": [7, 8]})


@pytest.fixture
def dataset(tmp_path: Path) -> lance_sql.Dataset:
    return lance_sql.write(TABLE, tmp_path / "sales.lance")


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (
            lambda ds: ds.scan(columns="id"),
            r"list of names, not 'id'\. Write columns=\['id'\]",
        ),
        (lambda ds: ds.to_table(columns="id"), "columns must be a list of names"),
        (lambda ds: ds.take([0], "id"), "columns must be a list of names"),
        (lambda ds: ds.take_positions([0], "id"), "columns must be a list of names"),
        (lambda ds: ds.scan(columns=5), "columns must be a list of names, not 5"),
        (lambda ds: ds.scan(limit="3"), "limit must be a whole number, not '3'"),
        (lambda ds: ds.scan(offset=1.5), "offset must be a whole number, not 1.5"),
        (lambda ds: ds.head("x"), "limit must be a whole number"),
        (lambda ds: ds["id"], r"to_table\(\) reads columns by name"),
        (lambda ds: ds.update("price = 1"), "update needs a dict from columns to new values"),
        (lambda ds: ds.alter_column("price", type="int"), "type must be an Arrow type, not 'int'"),
        (
            lambda ds: ds.cleanup("7 days"),
            r"a timedelta, not '7 days'.*timedelta\(days=7\)",
        ),
    ],
)
def test_methods(dataset: lance_sql.Dataset, mistake: Callable[[Any], object], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        mistake(dataset)
    assert dataset.to_table().equals(TABLE)


@pytest.mark.parametrize("place", [None, 5, 1.5, ["x.lance"]])
def test_locations(place: Any, dataset: lance_sql.Dataset) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a path or a URI, not"):
        lance_sql.open(place)
    with pytest.raises(InvalidArgumentError, match="must be a path or a URI, not"):
        lance_sql.write(TABLE, place)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"as_of": "yesterday"}, "as_of must be a datetime, not 'yesterday'"),
        ({"tag": 1}, "tag must be a name, not 1"),
        ({"branch": 1}, "branch must be a name, not 1"),
    ],
)
def test_versions(dataset: lance_sql.Dataset, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        lance_sql.open(dataset.uri, **options)


def test_statements() -> None:
    text: Any = None
    with pytest.raises(InvalidArgumentError, match="must be SQL text, not NoneType"):
        lance_sql.sql(text)
    engine: Any = [1]
    with pytest.raises(LanceError, match=r"Unknown SQL engine \[1\].*Pass parameters of a query as params="):
        lance_sql.sql("SELECT ?", engine)


def test_files_of_other_formats(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    pq.write_table(TABLE, tmp_path / "folder" / "part-0.parquet")
    for path in (tmp_path / "folder", tmp_path / "folder" / "part-0.parquet"):
        with pytest.raises(DatasetNotFoundError, match=r"with the folder _versions.*lance_sql\.write"):
            lance_sql.open(path)


def test_names_of_types(dataset: lance_sql.Dataset) -> None:
    kind: Any = "float32"
    assert dataset.alter_column("price", type=kind).schema.field("price").type == pa.float32()


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_texts_without_a_statement_and_single_parameters(engine: str) -> None:
    session = lance_sql.connect(engine=engine)
    for text in ("", "  ", ";", "-- nothing"):
        with pytest.raises(SqlError, match="contains no SQL statement"):
            lance_sql.sql(text, engine)
        with pytest.raises(SqlError, match="contains no SQL statement"):
            session.sql(text)
    for params in (1, "x"):
        with pytest.raises(InvalidArgumentError, match=r"not (1|'x')\. For one value, pass params=\[value\]"):
            session.sql("SELECT ?", params)
        with pytest.raises(InvalidArgumentError, match="must be a list or a dict"):
            session.explain("SELECT ?", params)
    with pytest.raises(InvalidArgumentError, match="Cannot register int as a table"):
        session.register("x", 5)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_variables_are_not_changed(dataset: lance_sql.Dataset, engine: str) -> None:
    ds = dataset
    for statement in ("INSERT INTO ds VALUES (1, 2, 3, 4)", "DELETE FROM ds", "UPDATE ds SET id = 1"):
        with pytest.raises(LanceError, match="ds is a Python variable"):
            lance_sql.sql(statement, engine)
    assert ds.to_table().equals(TABLE)


def test_directories_and_datasets_are_told_apart(
    dataset: lance_sql.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidArgumentError, match="is a dataset, not a directory"):
        lance_sql.connect(dataset.uri)
    with pytest.raises(InvalidArgumentError, match=r"Use lance_sql\.open\('x\.lance'\)"):
        lance_sql.Dataset("x.lance")
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(TableNotFoundError, match=r"directory of datasets: sales\.lance\. Pass it to"):
        lance_sql.sql(f"FROM '{tmp_path.name}'")


def test_names_of_other_libraries() -> None:
    for name, ours in {"read": "open", "query": "sql", "write_dataset": "write"}.items():
        with pytest.raises(AttributeError, match=rf"Use lance_sql\.{ours}\("):
            getattr(lance_sql, name)
    assert not hasattr(lance_sql, "nothing")


def test_columns_without_values(dataset: lance_sql.Dataset, tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match="dict has no columns"):
        lance_sql.write({}, tmp_path / "none.lance")
    with pytest.raises(InvalidArgumentError, match="New columns must be a dict"):
        dataset.add_columns(["x"])  # type: ignore[arg-type]
