"""The page on errors shows the messages that Spark's users get."""

from __future__ import annotations

from pathlib import Path

import mistakes
import pytest
from lance_engine.errors import ColumnNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_sql
import lance_sql.spark
from lance_sql.spark.cluster import _of_task


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> list[mistakes.Mistake]:
    return list(mistakes.mistakes_in_spark(spark))


def test_the_table_is_up_to_date(made: list[mistakes.Mistake]) -> None:
    """If this fails: ``python tests/support/mistakes.py``."""
    text = mistakes.PAGE.read_text()
    assert text == mistakes.page_for_spark(text, made)


def test_every_mistake_is_an_error_of_ours(made: list[mistakes.Mistake]) -> None:
    assert len(made) == len(mistakes.SPARK)
    for mistake in made:
        assert "." not in mistake.kind, mistake  # a class that is not ours has its module
        assert mistake.kind != "nothing", mistake
        assert mistake.message, mistake
        assert "Traceback" not in mistake.message


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the catalog ``shop``, and of ``x.lance``."""
    folder = tmp_path_factory.mktemp("shop")
    spark.conf.set("spark.sql.catalog.shop", "lancesql.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.shop.path", str(folder))
    lance_sql.write({"id": [1, 2]}, folder / "x.lance")
    return folder


STATEMENTS = {
    "SELECT * FROM shop.x WITH (verson = 1)": "did you mean 'version'",
    "SELECT * FROM shop.x WITH (mergeSchema = true)": "for writing",
    "SELECT * FROM shop.x WITH (version = 1)": "VERSION AS OF",
    "SELECT * FROM shop.x WITH (columns = 'id')": "name columns in SELECT",
    "SELECT * FROM shop.x WITH (branch = 'b')": "read a branch with",
    "SELECT * FROM shop.x WITH (path = '/y.lance')": "would have no effect",
    "INSERT INTO shop.x WITH (merge_schem = true) VALUES (1)": "did you mean 'merge_schema'",
    "CALL shop.system.optimise('x')": "choose from optimize",
    "SELECT * FROM shop.x.history": "Choose from versions",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_is_refused_in_one_sentence(spark: SparkSession, shop: Path, statement: str) -> None:
    with pytest.raises(PySparkException, match=STATEMENTS[statement]) as refused:
        spark.sql(statement).collect()
    assert "Traceback" not in str(refused.value)
    assert "\n" not in str(refused.value).strip()


def test_an_error_is_raised_and_not_logged_before(
    spark: SparkSession, shop: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        spark.sql("SELECT di FROM shop.x")
    assert capfd.readouterr().err == ""


def test_versions_are_chosen_where_spark_obeys(spark: SparkSession, shop: Path) -> None:
    lance_sql.write({"id": [3]}, shop / "x.lance", mode="append")
    assert spark.sql("SELECT count(*) FROM shop.x WITH (versionAsOf = 1)").first()[0] == 2
    assert spark.read.option("versionAsOf", 1).table("shop.x").count() == 2


@pytest.mark.slow
def test_errors_of_streams_have_no_stacks(spark: SparkSession, shop: Path) -> None:
    """Those of the reader, which Spark's worker answers with an error of its own, and of the writer."""
    frame = spark.readStream.format("lance").load(str(shop / "x.lance"))
    for stream, message in (
        (
            spark.readStream.format("lance")
            .option("version", 1)
            .load(str(shop / "x.lance"))
            .writeStream.format("noop"),
            "not for reading streams",
        ),
        (
            frame.writeStream.format("lance").option("path", str(shop / "y.lance")).option("merg", 1),
            "no option 'merg'",
        ),
    ):
        started = stream.option("checkpointLocation", str(shop / message)).trigger(availableNow=True).start()
        with pytest.raises(PySparkException, match=message) as refused:
            started.awaitTermination()
        assert "Traceback" not in str(refused.value)


def test_an_error_of_a_task_is_found_behind_its_stack() -> None:
    text = """Job aborted: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
lance_engine.errors.ColumnNotFoundError: Column 'x' not found.
Choose another

\tat org.apache.spark.api.python.BasePythonRunner"""
    found = _of_task(RuntimeError(text))
    assert isinstance(found, ColumnNotFoundError)
    assert str(found) == "Column 'x' not found.\nChoose another"
    assert _of_task(RuntimeError("lance_engine.errors.PLACES: x")) is None
    assert _of_task(RuntimeError("ValueError: x")) is None


@pytest.mark.slow
def test_errors_of_tasks_have_no_stacks(spark: SparkSession, shop: Path) -> None:
    with pytest.raises(lance_sql.LanceError, match="nothing") as refused:
        lance_sql.spark.update(spark, shop / "x.lance", {"nothing": "1"})
    assert "Traceback" not in str(refused.value)
    assert refused.value.__cause__ is None
