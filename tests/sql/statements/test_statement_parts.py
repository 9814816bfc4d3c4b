"""Parts of statements at the values where a slip would show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import LanceError, UnsupportedFeatureError

import lance_sql
from lance_sql.statements.databases import _from
from lance_sql.statements.dispatch import _values_in_brackets
from lance_sql.statements.options import StatementOptions
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import tokenize


def test_files_of_a_database_are_in_its_folder() -> None:
    found = _from(Statement("COPY t FROM '/where/it/was/t.parquet' (FORMAT parquet)"), "here")
    assert found.original == "COPY t FROM 'here/t.parquet' (FORMAT parquet)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO t (VALUES (1))", "INSERT INTO t  VALUES (1) "),
        ("INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a) VALUES (1)"),
        ("INSERT INTO t (a, values) SELECT 1, 2", "INSERT INTO t (a, values) SELECT 1, 2"),
    ],
)
def test_brackets_around_values_are_left_out(text: str, expected: str) -> None:
    for start, end, replacement in reversed(_values_in_brackets(list(tokenize(text)))):
        text = text[:start] + replacement + text[end:]
    assert text == expected


@pytest.mark.parametrize(("text", "number"), [("0", 0), (str(2**63 - 1), 2**63 - 1), (str(2**63), None), ("-1", None)])  # fmt: skip  # noqa: E501
def test_numbers_of_options_fit_in_64_bits(text: str, number: int | None) -> None:
    options = StatementOptions("VACUUM", {"x": text})
    if number is None:
        with pytest.raises(LanceError, match="a whole number"):
            options.number("x")
    else:
        assert options.number("x") == number


def test_exported_tables_have_the_keys_that_are_enforced(tmp_path: Path) -> None:
    with lance_sql.connect(tmp_path / "tables") as session:
        session.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        session.execute("CREATE TABLE u (id INT NOT NULL)")
        session.execute("ALTER TABLE u SET UNENFORCED PRIMARY KEY (id)")
        session.execute(f"EXPORT DATABASE '{tmp_path / 'exported'}'")
    tables = (tmp_path / "exported" / "schema.sql").read_text().split(";")
    assert [text.split("(")[0].split()[-1] for text in tables if "PRIMARY KEY" in text] == ["t"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    lance_sql.write(pa.table({"id": [1, 2], "s": ["a", "b"]}), place / "t.lance")
    return place


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ANALYZE t", "only works on tables of the SQL engine"),
        ("CREATE TABLE u (LIKE t)", "LIKE does not describe a dataset"),
        ("CREATE TABLE u (id INT DEFAULT nextval('q'))", "cannot take the next value of a sequence"),
        ("CREATE TABLE u (id INT, n INT GENERATED ALWAYS AS (id + 1) VIRTUAL)", "enerated column"),
    ],
)
def test_statements_that_mean_nothing_for_datasets(folder: Path, statement: str, message: str) -> None:
    with lance_sql.connect(folder) as session, pytest.raises(UnsupportedFeatureError, match=message):
        session.execute(statement)


def test_comments_are_those_of_the_table(tmp_path: Path) -> None:
    lance_sql.write(pa.table({"id": [1]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        session.execute("COMMENT ON TABLE t IS 'of ours'")
        query = "SELECT comment FROM duckdb_tables() WHERE table_name = 't'"
        assert session.execute(query).fetchall() == [("of ours",)]


def test_only_engines_that_compute_statements_have_databases_of_their_own(folder: Path) -> None:
    pytest.importorskip("datafusion")
    refused: dict[str, Any] = {
        "USE nowhere": "No catalog or schema is named 'nowhere'",
        "DETACH nowhere": "No catalog is attached as 'nowhere'",
        "SELECT id INTO u FROM t": "SELECT INTO is not supported",
        'DELETE FROM t WHERE s = "a"': "is a text in this dialect",
    }
    with lance_sql.connect(folder, engine="datafusion") as session:
        session.execute("DETACH IF EXISTS nowhere")
        session.execute("SET datafusion.sql_parser.dialect = 'mysql'")
        for statement, message in refused.items():
            with pytest.raises(LanceError, match=message):
                session.execute(statement)
    with lance_sql.connect(folder) as session:
        session.execute("ATTACH ':memory:' AS other")
        session.execute("USE other")
        session.execute("USE memory")
        session.execute("DETACH other")
        with pytest.raises(LanceError, match="other"):
            session.execute("USE other")
