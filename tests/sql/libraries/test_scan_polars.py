"""`scan_polars`: the results are those of Polars on the same data, and scans read what the query needs."""

from __future__ import annotations

import datetime
import math
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import lance_sql
from lance_sql.polars import _comparable, superset

ROWS = 20_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_sql.Dataset:
    numbers = range(ROWS)
    start = datetime.datetime(2024, 1, 1)
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "wide": pa.array([2**53 + number for number in numbers], pa.int64()),
            "price": pa.array([None if n % 7 == 0 else math.nan if n % 11 == 0 else n / 4 for n in numbers]),
            "small": pa.array([n / 10 for n in numbers], pa.float32()),
            "name": pa.array([None if n % 5 == 0 else f"n{n % 100:02}" for n in numbers]),
            "flag": pa.array([None, True, False, True] * (ROWS // 4)),
            "at": pa.array([start + datetime.timedelta(minutes=n) for n in numbers], pa.timestamp("us")),
            "day": pa.array([start.date() + datetime.timedelta(days=n // 100) for n in numbers]),
            "code": pa.array([f"c{n % 3}" for n in numbers]).dictionary_encode(),
        }
    )
    uri = str(tmp_path_factory.mktemp("polars") / "x.lance")
    lance_sql.write(table, uri, max_rows_per_file=6_000)
    return lance_sql.open(uri).delete("id = 17")


def column(name: str) -> pl.Expr:
    return pl.col(name)


#: predicate -> whether the scan is told something of it
PREDICATES: dict[str, tuple[pl.Expr, bool]] = {
    "comparison": (column("id") > 19_000, True),
    "turned round": (pl.lit(19_000) < column("id"), True),
    "and": ((column("id") > 100) & (column("name") == "n07"), True),
    "or": ((column("id") < 100) | column("name").is_null(), True),
    "partly known": ((column("id") < 100) & (column("id") % 2 == 0), True),
    "partly known or": ((column("id") < 100) | (column("id") % 2 == 0), False),
    "between": (column("id").is_between(10, 20, closed="left"), True),
    "in": (column("name").is_in(["n01", "n02", None]), True),
    "in with null": (column("name").is_in(["n01", None], nulls_equal=True), False),
    "not in": (~column("id").is_in([1, 2, 3]), False),
    "null": (column("price").is_null(), True),
    "not null": (column("price").is_not_null(), True),
    "starts": (column("name").str.starts_with("n1"), True),
    "flag": (column("flag"), True),
    "not flag": (~column("flag"), False),
    "nan is greatest": (column("price") > 4_000.0, True),
    "equal to nan": (column("price") == math.nan, False),
    "not equal": (column("price") != 3.5, True),
    "float32": (column("small") == 0.1, False),
    "a float against an integer": (column("wide") == float(2**53), False),
    "timestamp": (column("at") >= datetime.datetime(2024, 1, 10), True),
    "date": (column("day") == datetime.date(2024, 2, 1), True),
    "categories": (column("code") == "c1", False),
    "beyond the type": (column("id") > 2**40, False),
    "compared with null": (column("id") == pl.lit(None), False),
    "two columns": (column("id") * 0.25 == column("price"), False),
    "a function of Python": (column("id").map_batches(lambda ids: ids % 55 == 5, pl.Boolean), False),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", PREDICATES)
def test_a_predicate_selects_what_polars_selects(dataset: lance_sql.Dataset, name: str) -> None:
    predicate, _ = PREDICATES[name]
    whole = pl.DataFrame(dataset.scan().to_table())
    assert_frame_equal(lance_sql.scan_polars(dataset).filter(predicate).collect(), whole.filter(predicate))
    few = lance_sql.scan_polars(dataset).filter(predicate).select("day", "id").head(3)
    assert_frame_equal(few.collect(), whole.filter(predicate).select("day", "id").head(3))


class Told(list[dict[str, Any]]):
    """The arguments of the scans that Polars starts."""

    def scan(self, dataset: lance_sql.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
        real = type(dataset).scan

        def scan(this: Any, columns: Any = None, filter: Any = None, **options: Any) -> Any:
            self.append({"columns": columns, "filter": filter, **options})
            return real(this, columns, filter, **options)

        monkeypatch.setattr(type(dataset), "scan", scan)


@pytest.fixture
def told(dataset: lance_sql.Dataset, monkeypatch: pytest.MonkeyPatch) -> Told:
    calls = Told()
    calls.scan(dataset, monkeypatch)
    return calls


@pytest.mark.parametrize("name", PREDICATES)
def test_a_scan_is_told_what_is_safe(dataset: lance_sql.Dataset, told: Told, name: str) -> None:
    predicate, expected = PREDICATES[name]
    lance_sql.scan_polars(dataset).filter(predicate).collect()
    assert [call["filter"] is not None for call in told] in ([expected], [])  # none: Polars knew the answer
    assert told or not expected


def test_columns_and_the_row_limit_are_pushed(dataset: lance_sql.Dataset, told: Told) -> None:
    frame = lance_sql.scan_polars(dataset)
    assert frame.select("name", "id").head(5).collect().shape == (5, 2)
    assert set(told[0]["columns"]) == {"name", "id"}
    assert told[0]["limit"] == 5
    assert frame.filter(column("id") < 10).select("name").head(2).collect().shape == (2, 1)
    assert set(told[1]["columns"]) == {"name", "id"}
    assert told[1]["limit"] is None  # counted behind the predicate


def test_a_path_a_version_and_counts(dataset: lance_sql.Dataset) -> None:
    assert lance_sql.scan_polars(dataset.uri).select(pl.len()).collect().item() == ROWS - 1
    first = lance_sql.scan_polars(dataset.uri, 1)
    assert first.select(pl.len()).collect().item() == ROWS
    assert first.filter(column("id") == 17).collect().height == 1
    assert first.collect_schema()["code"] == pl.Categorical


def test_frames_join_and_stream(dataset: lance_sql.Dataset) -> None:
    frame = lance_sql.scan_polars(dataset)
    joined = frame.filter(column("id") < 100).join(frame.select("id", again="name"), on="id")
    assert joined.collect(engine="streaming").height == 99
    assert frame.group_by("code").len().collect()["len"].sum() == ROWS - 1


def test_huge_predicates_are_left_to_polars(dataset: lance_sql.Dataset) -> None:
    deep = column("id") == 0
    for number in range(1, 300):
        deep = deep | (column("id") == number)
    assert superset(deep, _comparable(dataset.schema)) is None
    assert lance_sql.scan_polars(dataset).filter(deep).collect().height == 299


def test_no_dataset_is_an_error(tmp_path) -> None:
    with pytest.raises(lance_sql.LanceError, match="nothing"):
        lance_sql.scan_polars(tmp_path / "nothing.lance")
