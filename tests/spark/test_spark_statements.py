"""The statements that lance-spark documents, in one session; and what becomes of them in Spark's parser."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from script_cases import read_cases, same, text

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
)

SCRIPTS = sorted((Path(__file__).parents[2] / "queries" / "conformance" / "spark").glob("*.test"))


@pytest.fixture
def office(spark: SparkSession, tmp_path: Path) -> SparkSession:
    """A session whose current catalog is the folder of the test."""
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.office", "lancesql.spark.LanceCatalog")
    session.conf.set("spark.sql.catalog.office.path", str(tmp_path))
    session.sql("USE office")
    return session


def outcome(session: SparkSession, statement: str) -> list[str] | str:
    try:
        rows = session.sql(statement).collect()
    except (PySparkException, RuntimeError) as error:
        return f"error: {error}"
    return ["|".join(text(value) for value in row) for row in rows]


def test_there_are_statements() -> None:
    assert sum(len(read_cases(script)) for script in SCRIPTS) >= 400


@pytest.mark.slow
@pytest.mark.timeout(900)  # Spark takes half a second for a statement
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script: Path, office: SparkSession, tmp_path: Path) -> None:
    wrong = []
    for case in read_cases(script):
        found = outcome(office, case.statement.replace("{folder}", str(tmp_path)))
        if case.rows and case.rows[0].startswith("error: "):
            expected = case.rows[0].removeprefix("error: ").lower()
            fits = isinstance(found, str) and expected in found.lower()
        else:
            fits = same(found, case.rows)
        if not fits:
            wrong.append(f"{case.name}: {found}")
    assert not wrong, "\n".join(wrong)
