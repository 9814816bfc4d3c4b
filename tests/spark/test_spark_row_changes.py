"""DELETE, UPDATE and MERGE INTO in Spark's SQL: the rows that DuckDB has after the same statements."""

from __future__ import annotations

import datetime
import random
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest
from lance_engine.errors import AmbiguousMergeError, CommitConflictError
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

import lance_sql
from lance_sql.spark.options import Options
from lance_sql.spark.row_changes import DELETE, INSERT, UPDATE
from lance_sql.spark.row_writer import RowChangesWriter

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
)

_COLUMNS = ("_operation", "_rowaddr", "id", "s")
Run = Callable[[str], Any]


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changes")
    spark.conf.set("spark.sql.catalog.yard", "lancesql.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.yard.path", str(folder))
    return folder


@pytest.fixture
def run(spark: SparkSession, root: Path) -> Run:
    return lambda text: spark.sql(text).collect()


def _table(rows: int, start: int = 0) -> pa.Table:
    numbers = range(start, start + rows)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "g": pa.array([None if i % 11 == 0 else i % 7 for i in numbers], pa.int32()),
            "s": [None if i % 13 == 0 else f"s{i % 5}" for i in numbers],
            "x": [None if i % 17 == 0 else i * 0.5 for i in numbers],
        }
    )


def _condition(dice: random.Random, row: str) -> str:
    number, group = dice.randrange(300), dice.randrange(7)
    choices = [
        f"{row}.id < {number}",
        f"{row}.id % 5 = {group % 5}",
        f"{row}.g = {group}",
        f"{row}.g IS NULL",
        f"{row}.x > {number}.5 OR {row}.s = 's{group % 5}'",
        f"{row}.id BETWEEN {number} AND {number + 40}",
        f"NOT ({row}.g >= {group} AND {row}.x < {number})",
        f"{row}.id IN (SELECT id FROM other WHERE x < {number})",
        f"{row}.s IS NULL OR length({row}.s) > 3",
    ]
    return dice.choice(choices)


def _assignment(dice: random.Random) -> str:
    number = dice.randrange(100)
    choices = [
        f"x = t.x + {number}",
        f"s = concat('u', coalesce(t.s, 'none'), {number})",
        "g = NULL",
        f"g = t.g + {number}",
        f"x = CASE WHEN t.g = 3 THEN {number} ELSE t.x END",
        f"s = 'é{number}', x = NULL",
        "id = t.id + 1000, g = 1",
    ]
    return dice.choice(choices)


def _merge(dice: random.Random, table: str) -> str:
    clauses = []
    condition = _condition(dice, "t")
    if "SELECT" not in condition:  # for which MERGE has no place
        clauses.append(f"WHEN MATCHED AND ({condition}) THEN DELETE")
    if dice.random() < 0.8:
        clauses.append(f"WHEN MATCHED THEN UPDATE SET {dice.choice(['x = o.x', 's = o.s, g = t.g + o.g'])}")
    if dice.random() < 0.8:
        condition = dice.choice(["", " AND o.g = 2", " AND o.x IS NOT NULL"])
        clauses.append(
            f"WHEN NOT MATCHED{condition} THEN INSERT (id, g, s, x) VALUES (o.id, o.g, 'new', o.x)"
        )
    if dice.random() < 0.3 or not clauses:
        clauses.append("WHEN NOT MATCHED BY SOURCE AND t.id % 9 = 4 THEN DELETE")
    if dice.random() < 0.3:
        clauses.append("WHEN NOT MATCHED BY SOURCE AND t.id % 9 = 5 THEN UPDATE SET x = 0.5")
    source = f"(SELECT id + {dice.randrange(60)} AS id, g, s, x FROM other)"
    return f"MERGE INTO {table} AS t USING {source} AS o ON t.id = o.id {' '.join(clauses)}"


def _statement(dice: random.Random, table: str) -> str:
    kind = dice.choice(["delete", "update", "update", "merge", "merge", "insert"])
    if kind == "delete":
        return f"DELETE FROM {table} AS t WHERE {_condition(dice, 't')} AND t.id % 3 = {dice.randrange(3)}"
    if kind == "update":
        return f"UPDATE {table} AS t SET {_assignment(dice)} WHERE {_condition(dice, 't')}"
    if kind == "merge":
        return _merge(dice, table)
    condition = f"g = {dice.randrange(7)}"
    return f"INSERT INTO {table} SELECT id + {dice.randrange(500)}, g, s, x FROM other WHERE {condition}"


def _compare(spark: SparkSession, run: Run, root: Path, seed: int, statements: int, stable_ids: bool) -> None:
    dice = random.Random(seed)
    path = root / f"random{seed}.lance"
    lance_sql.write(_table(200), path, stable_row_ids=stable_ids, max_rows_per_file=90)
    peer = duckdb.connect()
    peer.register("given", _table(200))
    peer.register("other_given", _table(60, 170))
    peer.execute("CREATE TABLE t AS FROM given; CREATE TABLE other AS FROM other_given")
    rows = [tuple(row.values()) for row in _table(60, 170).to_pylist()]
    spark.createDataFrame(rows, "id BIGINT, g INT, s STRING, x DOUBLE").createOrReplaceTempView("other")
    for _ in range(statements):
        text = _statement(dice, "TABLE")
        run(text.replace("TABLE", f"yard.random{seed}"))
        peer.execute(text.replace("TABLE", "t"))
        expected = sorted(map(repr, peer.execute("SELECT id, g, s, x FROM t").fetchall()))
        ours = lance_sql.open(path)
        official = lance.dataset(str(path))
        for found in (ours.scan().to_table(), official.to_table()):
            assert sorted(repr(tuple(row.values())) for row in found.to_pylist()) == expected, text
        if stable_ids:
            ids = ours.scan(columns=["_rowid"]).to_table()["_rowid"].to_pylist()
            assert len(set(ids)) == len(ids)
    assert lance_sql.open(path).verify(values=True).num_rows == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("seed", "stable_ids"), [(1, False), (2, True)], ids=["addresses", "stable ids"])
def test_random_statements(spark: SparkSession, run: Run, root: Path, seed: int, stable_ids: bool) -> None:
    _compare(spark, run, root, seed, 6, stable_ids)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_random_statements(spark: SparkSession, run: Run, root: Path, seed: int) -> None:
    _compare(spark, run, root, seed, 20, bool(seed % 2))


def test_a_statement_is_one_version_and_keeps_what_spark_rounds(run: Run, root: Path) -> None:
    moment = datetime.datetime(2020, 1, 1)
    stamps = pa.array([1_000_000_001, 2_000_000_002, None, 4_000_000_004], pa.timestamp("ns"))
    table = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.uint64()),
            "at": stamps,
            "nested": pa.StructArray.from_arrays([stamps, pa.array([0.5, None, 1.5, 2.5])], ["at", "x"]),
            "v": pa.array([[1, 2], [3, 4], None, [5, 6]], pa.list_(pa.float32(), 2)),
            "half": pa.array([1.5, 2.5, None, 3.5], pa.float16()),
            "s": pa.array(["a", "b", "a", None]).dictionary_encode(),
        }
    )
    lance_sql.write(table, root / "exact.lance")
    run("UPDATE yard.exact SET id = id + 10 WHERE id IN (1, 3)")
    run("UPDATE yard.exact SET at = TIMESTAMP_NTZ '2020-01-01 00:00:00' WHERE id = 2")
    dataset = lance_sql.open(root / "exact.lance")
    assert dataset.version == 3
    rows = dataset.scan().to_table().sort_by("id")
    expected = table.take([1, 3, 0, 2])
    for name in ("nested", "v", "half"):
        assert rows[name].to_pylist() == expected[name].to_pylist()
    assert rows["s"].to_pylist() == expected["s"].to_pylist()
    assert rows["id"].to_pylist() == [2, 4, 11, 13]
    assert rows["at"].cast(pa.int64()).to_pylist() == [
        int(moment.replace(tzinfo=datetime.UTC).timestamp()) * 10**9,
        4_000_000_004,
        1_000_000_001,
        None,
    ]


def test_the_rows_of_a_change_are_counted_by_its_fragments(run: Run, root: Path) -> None:
    lance_sql.write(_table(10), root / "counted.lance")
    before = lance_sql.open(root / "counted.lance").version
    run(
        "MERGE INTO yard.counted t USING (SELECT id, 1D AS x FROM range(8, 13)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, s.x)"
    )
    (count,) = run(
        "SELECT sum(rows) AS n FROM yard.counted.fragments WHERE fragment_id NOT IN "
        f"(SELECT fragment_id FROM yard.counted.fragments VERSION AS OF {before})"
    )
    assert count.n == 5  # two changed, three inserted


def test_conditions_of_which_spark_knows_no_filter_delete_all_their_rows(run: Run, root: Path) -> None:
    """Spark's filters for DELETE lack the side of an OR that they cannot express."""
    lance_sql.write(_table(60), root / "sides.lance")
    run("DELETE FROM yard.sides WHERE s IS NULL OR length(s) > 1 AND id % 3 = 1")
    kept = lance_sql.open(root / "sides.lance").scan().to_table().to_pylist()
    assert [row["id"] for row in kept] == [i for i in range(60) if i % 13 and i % 3 != 1]


def test_changes_that_memory_does_not_hold_go_through_a_file(run: Run, root: Path) -> None:
    lance_sql.write(_table(3000), root / "wide.lance")
    run("UPDATE yard.wide SET s = repeat(char(97 + id % 26), 8000 + id)")
    table = lance_sql.open(root / "wide.lance").scan().to_table()
    assert [len(text) - 8000 for text in table["s"].to_pylist()] == table["id"].to_pylist()
    assert {text[-1] for text in table["s"].to_pylist()} == set("abcdefghijklmnopqrstuvwxyz")


def test_ambiguous_merges_and_nulls_change_nothing(spark: SparkSession, run: Run, root: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string())])
    lance_sql.write(pa.table({"id": [1, 2], "s": ["a", "b"]}, schema=schema), root / "firm.lance")
    files = sorted((root / "firm.lance").rglob("*.lance"))
    merge = "MERGE INTO yard.firm t USING (SELECT 1L AS id UNION ALL SELECT 1L) o ON t.id = o.id"
    for text, reason in (
        (
            f"{merge} WHEN MATCHED THEN UPDATE SET s = 'c'",
            "CARDINALITY",
        ),
        ("UPDATE yard.firm SET id = NULLIF(id, 2)", "NULL"),
    ):
        with pytest.raises(Exception, match=reason):
            run(text)
    assert lance_sql.open(root / "firm.lance").version == 1
    assert sorted((root / "firm.lance").rglob("*.lance")) == files


def test_rows_that_another_job_changed_are_a_conflict(spark: SparkSession, run: Run, root: Path) -> None:
    path = str(root / "shared.lance")
    lance_sql.write(_table(10), path)

    def meddle(number: int) -> int:
        other = lance_sql.open(path)
        if other.version == 1:
            other.update({"x": "-1"}, "id = 5")
        return number

    spark.udf.register("meddle", meddle, "bigint")
    with pytest.raises(Exception, match="CommitConflictError"):
        run("UPDATE yard.shared SET g = 99, x = meddle(id) WHERE id IN (5, 6)")
    dataset = lance_sql.open(path)
    assert dataset.version == 2
    assert dataset.count_rows("g = 99") == 0
    assert len(list((root / "shared.lance" / "data").iterdir())) == 2  # what the conflict wrote is gone
    run("UPDATE yard.shared SET g = 99, x = meddle(id) WHERE id IN (5, 6)")
    assert lance_sql.open(path).count_rows("g = 99") == 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("other", [5, 8], ids=["the same row", "another row"])
def test_two_jobs_that_change_rows_at_the_same_time(
    spark: SparkSession, run: Run, root: Path, tmp_path: Path, other: int
) -> None:
    """The second job starts and ends while a task of the first one runs."""
    name = f"race{other}"
    path = str(root / f"{name}.lance")
    lance_sql.write(_table(10), path)
    began, ended = tmp_path / "began", tmp_path / "ended"

    def outlast(number: int) -> int:
        began.touch()
        last = time.monotonic() + 120
        while not ended.exists() and time.monotonic() < last:
            time.sleep(0.02)
        return number

    spark.udf.register(f"outlast{other}", outlast, "bigint")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run, f"UPDATE yard.{name} SET g = 99, x = outlast{other}(id) WHERE id IN (5, 6)")
        last = time.monotonic() + 120
        while not began.exists() and not first.done() and time.monotonic() < last:
            time.sleep(0.02)
        run(f"UPDATE yard.{name} SET g = 55 WHERE id = {other}")
        ended.touch()
        if other == 5:
            with pytest.raises(Exception, match="CommitConflictError"):
                first.result()
        else:
            first.result()
    dataset = lance_sql.open(path)
    found = dataset.scan(columns=["id", "g"]).to_table().to_pylist()
    changed = {row["id"]: row["g"] for row in found if row["g"] in (55, 99)}
    assert changed == ({5: 55} if other == 5 else {5: 99, 6: 99, 8: 55})
    assert (len(found), dataset.version) == (10, 2 if other == 5 else 3)
    assert lance.dataset(path).to_table().sort_by("id") == dataset.scan().to_table().sort_by("id")


@pytest.fixture
def writer(tmp_path: Path) -> RowChangesWriter:
    """The writer of one statement over ten rows, as the driver makes it."""
    lance_sql.write(_table(10).select(["id", "s"]), tmp_path / "t.lance")
    options = Options(path=str(tmp_path / "t.lance"), changed_version=1)
    fields = [
        ("_operation", IntegerType()),
        ("_rowaddr", LongType()),
        ("id", LongType()),
        ("s", StringType()),
    ]
    return RowChangesWriter(options, StructType([StructField(name, kind) for name, kind in fields]))


def _changes(*rows: tuple[int, int | None, int | None, str | None]) -> pa.RecordBatch:
    types = [pa.int32(), pa.int64(), pa.int64(), pa.string()]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, list(_COLUMNS))


def test_what_lost_attempts_wrote_is_removed(writer: RowChangesWriter, tmp_path: Path) -> None:
    batch = _changes((INSERT, None, 50, "new"), (UPDATE, 2, 2, "two"), (DELETE, 4, None, None))
    lost, kept = writer.write(iter([batch])), writer.write(iter([batch]))
    assert lost != kept
    writer.commit([None, kept])
    dataset = lance_sql.open(tmp_path / "t.lance")
    assert (dataset.version, dataset.count_rows(), dataset.count_rows("s IN ('new', 'two')")) == (2, 10, 2)
    assert len(list((tmp_path / "t.lance" / "data").iterdir())) == 3


def test_tasks_that_change_the_same_row_are_refused(writer: RowChangesWriter, tmp_path: Path) -> None:
    update, delete = _changes((UPDATE, 2, 2, "two")), _changes((DELETE, 2, None, None))
    for first, second in ((update, update), (update, delete)):
        with pytest.raises(AmbiguousMergeError):
            writer.write(iter([first, second]))
        messages = [writer.write(iter([batch])) for batch in (first, second)]
        with pytest.raises(AmbiguousMergeError):
            writer.commit(messages)
        writer.abort(messages)
    assert lance_sql.open(tmp_path / "t.lance").version == 1
    assert len(list((tmp_path / "t.lance" / "data").iterdir())) == 1


def test_a_version_in_between_decides_whether_rows_conflict(writer: RowChangesWriter, tmp_path: Path) -> None:
    elsewhere = writer.write(iter([_changes((UPDATE, 2, 2, "two"))]))
    lance_sql.open(tmp_path / "t.lance").delete("id = 7")
    writer.commit([elsewhere])
    assert lance_sql.open(tmp_path / "t.lance").count_rows() == 9
    with pytest.raises(CommitConflictError):
        writer.commit([writer.write(iter([_changes((UPDATE, 7, 7, "seven"))]))])
