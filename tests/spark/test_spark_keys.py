"""Tables with PRIMARY KEY, UNIQUE and CHECK, written by Spark: no way of writing breaks a constraint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError, ConstraintError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructType

import lance_sql
from lance_sql.spark.options import Options
from lance_sql.spark.row_changes import INSERT
from lance_sql.spark.row_writer import RowChangesWriter
from lance_sql.spark.writer import LanceWriter

ROWS = {1: "a", 2: "b", 3: "c"}
SCHEMA = StructType().add("id", LongType()).add("s", StringType())

needs_planner = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
)


def rows(path: Path) -> dict[int, str]:
    table = lance_sql.open(path).to_table()
    found = dict(zip(table["id"].to_pylist(), table["s"].to_pylist(), strict=True))
    assert len(found) == table.num_rows
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A keyed table, whose texts are unique and not empty."""
    path = tmp_path / "t.lance"
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, s VARCHAR UNIQUE, CHECK (s <> ''))")
        session.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return path


def refusal(do: object) -> str:
    with pytest.raises(PySparkException) as caught:
        do()  # type: ignore[operator]
    message = str(caught.value)
    assert "Traceback" not in message, message
    return message


@needs_planner
@pytest.mark.slow  # 16 statements
def test_statements_keep_the_constraints(spark: SparkSession, path: Path) -> None:
    spark.conf.set("spark.sql.catalog.keyed", "lancesql.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.keyed.path", str(path.parent))
    version = lance_sql.open(path).version
    for statement, what in {
        "INSERT INTO keyed.t VALUES (3, 'new')": 'Duplicate key "id: 3" violates primary key constraint',
        "INSERT INTO keyed.t VALUES (4, 'x'), (4, 'y')": 'Duplicate key "id: 4"',
        "INSERT INTO keyed.t VALUES (4, 'a')": 'Duplicate key "s: a" violates unique constraint',
        "INSERT INTO keyed.t VALUES (4, '')": "CHECK constraint failed",
        "INSERT INTO keyed.t VALUES (NULL, 'x')": "NOT_NULL_ASSERT_VIOLATION|null",
        "INSERT OVERWRITE keyed.t VALUES (4, 'x'), (4, 'y')": 'Duplicate key "id: 4"',
        "UPDATE keyed.t SET id = 1 WHERE id = 2": 'Duplicate key "id: 1"',
        "UPDATE keyed.t SET s = '' WHERE id = 1": "CHECK constraint failed",
        "MERGE INTO keyed.t USING (SELECT 9L AS id, 'a' AS s) n ON t.id = n.id "
        "WHEN NOT MATCHED THEN INSERT *": 'Duplicate key "s: a"',
    }.items():
        message = refusal(lambda statement=statement: spark.sql(statement))
        assert any(word in message for word in what.split("|")), (statement, message)
        assert rows(path) == ROWS
        assert lance_sql.open(path).version == version
    # What keeps them is done.
    spark.sql("UPDATE keyed.t SET id = id + 10, s = concat(s, s)")
    spark.sql(
        "MERGE INTO keyed.t USING (SELECT 11L AS id, 'a' AS s UNION ALL SELECT 1L, 'z') n ON t.id = n.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(path) == {11: "a", 12: "bb", 13: "cc", 1: "z"}
    spark.sql("INSERT OVERWRITE keyed.t SELECT id, s FROM keyed.t WHERE id > 1")
    assert rows(path) == {11: "a", 12: "bb", 13: "cc"}
    assert 'Duplicate key "id: 11"' in refusal(lambda: spark.sql("INSERT INTO keyed.t VALUES (11, 'n')"))


@needs_planner
@pytest.mark.slow  # after a failed commit, a job waits for tasks that may still be writing
def test_saved_rows_keep_the_constraints(spark: SparkSession, path: Path) -> None:
    doubled = spark.createDataFrame([(3, "new")], SCHEMA)
    assert 'Duplicate key "id: 3"' in refusal(
        lambda: doubled.write.format("lance").mode("append").save(str(path))
    )
    assert rows(path) == ROWS


@pytest.mark.slow
def test_streams_keep_the_constraints(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    """A batch with a duplicate stops the stream; it goes on when the batch fits."""
    source = tmp_path / "source.lance"
    lance_sql.write(pa.table({"id": [3, 4], "s": ["new", "d"]}), source)

    def run() -> None:
        stream = spark.readStream.format("lance").load(str(source)).writeStream.format("lance")
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        stream.trigger(availableNow=True).start(str(path)).awaitTermination()

    with pytest.raises(StreamingQueryException, match=r'Duplicate key "id: 3"'):
        run()
    assert rows(path) == ROWS
    lance_sql.open(path).delete("id = 3")
    run()
    assert rows(path) == {1: "a", 2: "b", 3: "new", 4: "d"}
    run()  # the batch is not repeated
    assert len(rows(path)) == 4


@pytest.fixture(params=["append", "overwrite", "merge", "replace"])
def planned(request: pytest.FixtureRequest, path: Path) -> object:
    """A job of Spark whose tasks have written the keys 4 and 5, and which has not committed yet."""
    batch = pa.record_batch({"id": [4, 5], "s": ["d", "e"]})
    if request.param == "merge":
        options = Options.parse(
            {"path": str(path), "planner.changed_version": str(lance_sql.open(path).version)}
        )
        changes = StructType().add("_operation", LongType()).add("_rowaddr", LongType())
        writer = RowChangesWriter(options, StructType([*changes.fields, *SCHEMA.fields]))
        nulls = pa.nulls(2, pa.int64())
        batch = pa.record_batch(
            {"_operation": [INSERT] * 2, "_rowaddr": nulls, "id": batch["id"], "s": batch["s"]}
        )
    else:
        texts = {"path": str(path)}
        if request.param == "replace":
            filters = json.dumps([{"kind": "EqualTo", "column": ["id"], "value": ["integer", "2"]}])
            told = {"version": lance_sql.open(path).version, "filters": filters}
            texts["planner.replaced_rows"] = json.dumps(told)
        writer = LanceWriter(Options.parse(texts), SCHEMA, request.param == "overwrite")
    message = writer.write(iter([batch]))
    return writer, message, request.param


def test_racing_writers_cannot_duplicate(
    planned: tuple,  # type: ignore[type-arg]
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer, message, kind = planned
    monkeypatch.setattr("lance_sql.spark.cluster.QUIET_SECONDS", 0.1)  # no task is left
    lance_sql.write(pa.table({"id": [5], "s": ["mine"]}), path, mode="append")
    if kind == "overwrite":
        writer.commit([message])
        assert rows(path) == {4: "d", 5: "e"}
        return
    # Changes that insert rows conflict with every append, of whatever keys.
    inserts = kind in ("merge", "replace")
    error, words = (CommitConflictError, "append") if inserts else (ConstraintError, '"id: 5"')
    with pytest.raises(error, match=words):
        writer.commit([message])
    writer.abort([message])
    assert rows(path) == {**ROWS, 5: "mine"}
    stored = {file.path for fragment in lance_sql.open(path).snapshot.fragments for file in fragment.files}
    assert {file.name for file in (path / "data").iterdir()} == stored


def test_writers_of_other_keys_both_commit(planned: tuple, path: Path) -> None:  # type: ignore[type-arg]
    writer, message, kind = planned
    if kind == "append":
        lance_sql.write(pa.table({"id": [6], "s": ["mine"]}), path, mode="append")
    else:
        lance_sql.open(path).delete("id = 1")
    writer.commit([message])
    others = {"append": {**ROWS, 6: "mine"}, "merge": {2: "b", 3: "c"}, "replace": {3: "c"}, "overwrite": {}}
    before = others[kind]
    assert rows(path) == before | {4: "d", 5: "e"}


def test_replaced_rows_that_another_writer_changed_conflict(path: Path) -> None:
    filters = json.dumps([{"kind": "LessThan", "column": ["id"], "value": ["integer", "3"]}])
    told = {"version": lance_sql.open(path).version, "filters": filters}
    options = Options.parse({"path": str(path), "planner.replaced_rows": json.dumps(told)})
    writers = [LanceWriter(options, SCHEMA, False) for _ in range(3)]
    batches = [[pa.record_batch({"id": [1], "s": ["x"]})], [pa.record_batch({"id": [2], "s": ["y"]})], []]
    messages = [writer.write(iter(rows)) for writer, rows in zip(writers, batches, strict=True)]
    writers[0].commit([messages[0]])
    assert rows(path) == {1: "x", 3: "c"}
    for writer, message in zip(writers[1:], messages[1:], strict=True):
        with pytest.raises(CommitConflictError):
            writer.commit([message])
    assert rows(path) == {1: "x", 3: "c"}
    nothing = {**told, "version": lance_sql.open(path).version, "filters": filters.replace("3", "0")}
    options = Options.parse({"path": str(path), "planner.replaced_rows": json.dumps(nothing)})
    for batches_now, expected in (
        ([], {1: "x", 3: "c"}),
        ([{"id": [9], "s": ["z"]}], {1: "x", 3: "c", 9: "z"}),
    ):
        writer = LanceWriter(options, SCHEMA, False)
        writer.commit([writer.write(iter(map(pa.record_batch, batches_now)))])
        assert rows(path) == expected


def test_keys_declared_meanwhile_hold(planned: tuple, path: Path) -> None:  # type: ignore[type-arg]
    writer, message, kind = planned
    if kind == "overwrite":
        lance_sql.open(path).add_check("id <> 4")
        writer.commit([message])  # an overwrite by path replaces the constraints, too
        assert rows(path) == {4: "d", 5: "e"}
        return
    lance_sql.open(path).add_check("id <> 4")
    with pytest.raises(ConstraintError, match="CHECK"):
        writer.commit([message])
    assert rows(path) == ROWS


@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.add_check("id <> 9"),
        lambda ds: ds.add_key(["s", "id"]),
        lambda ds: ds.alter_column("s", nullable=False),
        lambda ds: ds.add_columns({"n": "id"}),
        lambda ds: ds.update_schema_metadata({"comment": "text"}, column="s"),
    ],
)
def test_rows_are_not_replaced_under_an_older_definition(path: Path, change: object) -> None:
    options = Options.parse({"path": str(path), "planner.keeps_schema": "true"})
    writer = LanceWriter(options, SCHEMA, True)
    message = writer.write(iter([pa.record_batch({"id": [3, 4], "s": ["x", "y"]})]))
    defined = change(lance_sql.open(path)).storage_schema  # type: ignore[operator]
    with pytest.raises(CommitConflictError, match="changed the columns or constraints"):
        writer.commit([message])
    assert lance_sql.open(path).storage_schema.equals(defined, check_metadata=True)
    assert rows(path) == ROWS
    lance_sql.open(path).delete("id = 1")  # other rows make no difference
    writer = LanceWriter(options, SCHEMA, True)
    message = writer.write(
        iter([pa.record_batch({"id": [3], "s": ["x"]} | ({"n": [1]} if "n" in defined.names else {}))])
    )
    lance_sql.open(path).delete("id = 2")
    writer.commit([message])
    assert rows(path) == {3: "x"}


def test_replacing_the_rows_of_a_table_keeps_its_definition(path: Path) -> None:
    """As INSERT OVERWRITE and TRUNCATE do; df.write.mode("overwrite") replaces columns and constraints."""
    lance_sql.open(path).update_schema_metadata({"comment": "the key"}, column="id")
    options = Options.parse({"path": str(path), "planner.keeps_schema": "true"})
    schema = lance_sql.open(path).storage_schema
    for texts, error in ((["x", "x"], r'Duplicate key "s: x"'), (["x", "y"], None)):
        writer = LanceWriter(options, SCHEMA, True)
        message = writer.write(iter([pa.record_batch({"id": [3, 4], "s": texts})]))
        if error is None:
            writer.commit([message])
            continue
        with pytest.raises(ConstraintError, match=error):
            writer.commit([message])
        assert rows(path) == ROWS
    assert rows(path) == {3: "x", 4: "y"}
    assert lance_sql.open(path).storage_schema.equals(schema, check_metadata=True)
    with pytest.raises(ConstraintError, match=r'Duplicate key "id: 4"'):
        lance_sql.write(pa.table({"id": [4], "s": ["z"]}), path, mode="append")
