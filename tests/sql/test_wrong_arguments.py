"""Arguments of the wrong type raise an error of the library that says what to pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_engine.errors import DatasetNotFoundError, InvalidArgumentError, LanceError

import lance_sql

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
