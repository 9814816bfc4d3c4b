"""``CALL catalog.system.NAME(...)`` and the statements that are such calls: maintenance in Spark SQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_engine.errors import InvalidArgumentError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark.procedures import table_name

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
)

Ask = Callable[[str], list[Any]]


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """The table ``office.db.t``: 3 versions, 3 fragments."""
    spark.conf.set("spark.sql.catalog.office", "lancesql.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.office.path", str(tmp_path))
    (tmp_path / "db").mkdir()
    path = str(tmp_path / "db" / "t.lance")
    for part in range(3):
        frame = (
            spark.range(part * 100, part * 100 + 100).selectExpr("id", "concat('s', id % 7) AS s").coalesce(1)
        )
        frame.write.format("lance").mode("append").save(path)
    return path


@pytest.fixture
def ask(spark: SparkSession) -> Ask:
    # Spark remembers catalogs by name: their options are those of the first use.
    fresh = spark.newSession()
    for name in ("office", "office.path"):
        fresh.conf.set(f"spark.sql.catalog.{name}", spark.conf.get(f"spark.sql.catalog.{name}"))
    return lambda text: [row.asDict() for row in fresh.sql(text).collect()]


def test_fragments_are_joined(path: str, ask: Ask) -> None:
    (joined,) = ask(
        "OPTIMIZE office.db.t -- all of it\nWITH (num_threads = 4, target_rows_per_fragment = 900);"
    )
    assert (joined["fragments_before"], joined["fragments_after"], joined["version"]) == (3, 1, 5)
    assert (joined["fragments_removed"], joined["files_removed"], joined["files_added"]) == (3, 3, 1)
    assert len(lance.dataset(path).get_fragments()) == 1
    history = ask("DESCRIBE HISTORY office.db.t;")
    assert [row["version"] for row in history] == [5, 4, 3, 2, 1]
    # Nothing is left to do: no version is made.
    again = ask("CALL office.system.optimize(table => 'office.db.`t`', target_rows => 1000)")
    assert (again[0]["fragments_before"], again[0]["fragments_after"], again[0]["version"]) == (1, 1, 5)


def test_indices_are_built_and_dropped(path: str, ask: Ask) -> None:
    built = ask("CALL office.system.create_index('db.t', 'id', options => map('page_rows', '128'))")
    assert built == [{"index": "id_idx", "version": 4, "fragments_indexed": 3, "index_name": "id_idx"}]
    (second,) = ask("ALTER TABLE office.db.t CREATE INDEX by_s USING bitmap (`s`) WITH ('train' = \"true\")")
    assert (second["index_name"], second["fragments_indexed"]) == ("by_s", 3)
    names = lance_sql.open(path).inspect.indices().column("name").to_pylist()
    assert sorted(names) == ["by_s", "id_idx"]
    assert lance.dataset(path).scanner(filter="s = 's3'").count_rows() == 43
    (shown, _) = ask("SHOW INDEXES FROM office.db.t")
    assert list(shown.values()) == ["id_idx", ["id"], "btree", 3, 300, 0, 0, 1]
    assert ask("ALTER TABLE office.`db`.t DROP INDEX by_s")[0]["version"] == 6
    assert lance_sql.open(path).inspect.indices().column("name").to_pylist() == ["id_idx"]


def test_tags_and_restore(path: str, ask: Ask) -> None:
    tag = {"tag": "two", "version": 2, "name": "two"}
    assert ask("ALTER TABLE office.db.t CREATE TAG two AS OF VERSION 2") == [tag]
    assert ask("SELECT count(*) AS n FROM office.db.t VERSION AS OF 'two'") == [{"n": 200}]
    with pytest.raises(AnalysisException, match="two"):
        ask("CALL office.system.tag('db.t', 'two')")
    assert ask("CALL office.system.restore('db.t', 'two')") == [{"restored": 2, "version": 4}]
    assert ask("SELECT count(*) AS n FROM office.db.t") == [{"n": 200}]
    assert ask("CALL office.system.tag('db.t', 'two', replace => true)") == [{**tag, "version": 4}]
    assert ask("ALTER TABLE office.db.t DROP TAG IF EXISTS two") == [{"tag": "two", "name": "two"}]
    assert lance_sql.open(path).tags.list() == []
    assert ask("CALL office.system.restore('db.t', 1)") == [{"restored": 1, "version": 5}]


def test_old_versions_are_removed(path: str, ask: Ask) -> None:
    (kept,) = ask("CALL office.system.vacuum('db.t')")
    assert (kept["versions"], kept["dry_run"]) == (0, False)
    (planned,) = ask("CALL office.system.vacuum('db.t', retain_hours => 0, dry_run => true)")
    assert (planned["versions"], planned["dry_run"]) == (2, True)
    for period, versions in (("7 DAYS", 0), ("1 day", 0), ("168 HOURS", 0), ("0 DAYS", 2), ("0 hours", 2)):
        (planned,) = ask(f"VACUUM office.db.t RETAIN {period} DRY RUN")
        assert (planned["versions"], planned["dry_run"]) == (versions, True), period
    assert [version["version"] for version in lance.dataset(path).versions()] == [1, 2, 3]
    assert ask("CALL office.system.vacuum('db.t', retain_hours => 0)")[0]["versions"] == 2
    assert [version["version"] for version in lance.dataset(path).versions()] == [3]
    assert ask("SELECT count(*) AS n FROM office.db.t") == [{"n": 300}]


def test_columns_come_from_a_view(path: str, ask: Ask) -> None:
    ask("DELETE FROM office.db.t WHERE id = 150")
    ask(
        "CREATE OR REPLACE TEMPORARY VIEW doubled AS "
        "SELECT _rowaddr, id * 2 AS d FROM office.db.t WHERE id < 200"
    )
    assert ask("ALTER TABLE office.db.t ADD COLUMNS d FROM doubled") == [{"columns": "d"}]
    before = lance_sql.open(path).scan(columns=["id", "_rowaddr"]).to_table()
    ask(
        "CREATE OR REPLACE TEMPORARY VIEW changed AS "
        "SELECT _rowaddr, 'new' AS s, -d AS d FROM office.db.t WHERE id IN (7, 299)"
    )
    ask("ALTER TABLE office.db.t UPDATE COLUMNS s, d FROM changed")
    rows = lance.dataset(path).to_table().to_pylist()
    expected = [
        {
            "id": i,
            "s": "new" if i in (7, 299) else f"s{i % 7}",
            "d": -14 if i == 7 else i * 2 if i < 200 else None,
        }
        for i in range(300)
        if i != 150
    ]
    assert sorted(rows, key=lambda row: row["id"]) == expected
    assert lance_sql.open(path).version == 6  # one commit each
    assert lance_sql.open(path).scan(columns=["id", "_rowaddr"]).to_table() == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CALL office.system.optimize('db.missing')", "Table not found"),
        ("CALL office.system.optimize('`../t`')", "cannot be the name"),
        ("CALL office.system.optimize('db.t', 0)", "at least 1"),
        ("OPTIMIZE office.db.t WITH (threads = 1)", "Unknown option threads"),
        ("CALL office.system.vacuum('db.t', -1)", "at least 0"),
        ("CALL office.system.create_index('db.t', 'nothing')", "nothing"),
        ("CALL office.system.create_index('db.t', 'id', options => map('rows', '1'))", "rows"),
        ("CALL office.system.restore('db.t', 9)", "9"),
        ("CALL office.system.tag()", "REQUIRED_PARAMETER_NOT_FOUND"),
        ("CALL office.system.burn('db.t')", "Unknown procedure 'burn': choose from optimize"),
    ],
)
def test_mistakes_change_nothing(path: str, ask: Ask, statement: str, words: str) -> None:
    with pytest.raises(PySparkException, match=words):
        ask(statement)
    assert lance_sql.open(path).version == 3


def test_names_of_tables() -> None:
    assert table_name("t", "office") == ["t"]
    assert table_name("office", "office") == ["office"]
    assert table_name("office.db.t", "office") == ["db", "t"]
    assert table_name("db.`a.b ``c`", "office") == ["db", "a.b `c"]
    for wrong in ("", "a..b", "a.", "`a"):
        with pytest.raises(InvalidArgumentError, match="not the name of a table"):
            table_name(wrong, "office")
