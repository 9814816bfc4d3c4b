"""Values of updates and new columns that only a SQL engine can compute."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError, SchemaMismatchError

import lance_sql


@pytest.fixture
def dataset(tmp_path: Path) -> lance_sql.Dataset:
    table = pa.table({"id": range(10), "name": ["a b"] * 10, "x": [i / 4 for i in range(10)]})
    return lance_sql.write(table, tmp_path / "t.lance")


def test_expressions_beyond_filters(dataset: lance_sql.Dataset) -> None:
    after = dataset.delete("id = 3").update(
        {"x": "CASE WHEN id % 2 = 0 THEN 100 ELSE x END", "name": "replace(name, ' ', '-') || id"}, "id > 6"
    )
    rows = {row["id"]: (row["name"], row["x"]) for row in after.to_table().to_pylist()}
    assert (rows[6], rows[7], rows[8]) == (("a b", 1.5), ("a-b7", 1.75), ("a-b8", 100.0))
    assert after.schema == dataset.schema
    added = after.add_columns({"words": "string_split(name, ' ')", "Y": "greatest(X, 2)", "one": "pi()"})
    assert added.schema.field("words").type == pa.list_(pa.string())
    assert added.to_table(filter="id = 6").to_pylist()[0] | {"one": 0} == {
        "id": 6, "name": "a b", "x": 1.5, "words": ["a", "b"], "Y": 2.0, "one": 0
    }  # fmt: skip
    assert isinstance(after, lance_sql.Dataset)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("sum(x)", InvalidFilterError, "own row"),
        ("row_number() OVER ()", InvalidFilterError, "own row"),
        ("(SELECT 1)", InvalidFilterError, "own row"),
        ("CASE WHEN nope THEN 1 END", ColumnNotFoundError, "nope"),
        ("no_such_function(x)", InvalidFilterError, "no_such_function"),
        ("x, id", InvalidFilterError, "Not a valid SQL expression"),
        ("unnest([x, x])", SchemaMismatchError, "20 values for 10 rows"),
        ("replace(name, 'a', 'b')", InvalidFilterError, "to double"),
    ],
)
def test_what_is_refused(
    dataset: lance_sql.Dataset, value: str, error: type[Exception], message: str
) -> None:
    before = dataset.snapshot.store.list("")
    with pytest.raises(error, match=message):
        dataset.update({"x": value})
    assert dataset.snapshot.store.list("") == before
