"""COPY t FROM reads files as plain DuckDB does for a table with the same columns."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from lance_engine.errors import LanceError

import lance_sql

COLUMNS = '(id INTEGER, name VARCHAR, day DATE, "Odd one" STRUCT(A INTEGER))'
FILES = {
    "no_header.csv": "1,x,2024-01-01,\n2,y,,\n",
    "header.csv": "id,name,day,Odd one\n1,x,2024-01-01,\n2,y,,{'A': 7}\n",
    "text.csv": "id,name\na,b\n",
    "numbers.csv": "007,007\n8,8\n",
    "semicolon.csv": "1;x;01/02/2024;\n",
    "lines.ndjson": '{"id": 1, "name": "x", "day": "2024-01-01", "Odd one": {"A": 1}}\n{"name": "y"}\n',
    "one.txt": "1\n2\n",
    "short.csv": "1,x\n",
}
QUERY = "SELECT 1 AS other, 2.5 AS names, TIMESTAMP '2024-01-01 13:00:00' AS d, {'a': '3'} AS s"
STATEMENTS = [
    "COPY t FROM '{no_header.csv}'",
    "COPY t FROM '{header.csv}'",
    "COPY t FROM '{header.csv}' (HEADER)",
    "COPY t FROM '{header.csv}' (HEADER false)",
    "COPY t (id, name) FROM '{text.csv}'",
    "COPY t (name, id) FROM '{numbers.csv}'",
    "COPY t FROM '{semicolon.csv}' (DELIMITER ';', DATEFORMAT '%d/%m/%Y')",
    "COPY t FROM '{semicolon.csv}' WITH (FORMAT csv, DELIM ';', NULLSTR 'x')",
    "COPY t (id) FROM '{one.txt}' (FORMAT csv)",
    "COPY t FROM '{short.csv}' (NULL_PADDING)",
    "COPY t FROM '{short.csv}'",
    "COPY t FROM '{short.csv}' (NO_SUCH_OPTION)",
    "COPY t FROM '{lines.ndjson}' (FORMAT json)",
    "COPY t FROM '{rows.parquet}'",
    "COPY t FROM '{rows.parquet}' (FORMAT parquet)",
    "COPY t (id, name) FROM '{rows.parquet}'",
    "COPY t FROM '{missing.csv}'",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({QUERY}) TO '{folder / 'rows.parquet'}'")
    return folder


@pytest.mark.sampled(12)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_files_are_read_as_by_duckdb(tmp_path: Path, files: Path, engine: str, statement: str) -> None:
    text = statement.replace("{", f"{files}/").replace("}", "")
    with lance_sql.connect(tmp_path, engine=engine) as session, duckdb.connect() as plain:
        for connection in (session, plain):
            connection.execute(f"CREATE TABLE t {COLUMNS}")
        try:
            copied = plain.execute(text).fetchall()
        except duckdb.Error:
            with pytest.raises(LanceError):
                session.sql(text)
            copied = []
        else:
            assert session.sql(text).fetchall() == copied
        expected = plain.execute("SELECT * FROM t ORDER BY ALL").fetchall()
        with lance_sql.connect(tmp_path) as reading:
            assert reading.sql("SELECT * FROM t ORDER BY ALL").fetchall() == expected
        assert session.table_names() == ["t"]


def test_other_columns_have_their_defaults(tmp_path: Path, files: Path) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE t (a INTEGER DEFAULT 7, id INTEGER)")
        session.sql(f"COPY t (id) FROM '{files / 'one.txt'}' (FORMAT csv)")
        assert session.sql("SELECT * FROM t").fetchall() == [(7, 1), (7, 2)]


def test_an_error_in_a_transaction_says_what_failed(tmp_path: Path, files: Path) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.sql(f"CREATE TABLE t {COLUMNS}; BEGIN")
        with pytest.raises(LanceError, match="columns found by the sniffer"):
            session.sql(f"COPY t FROM '{files / 'short.csv'}'")
        session.rollback()
        assert session.sql("SELECT count(*) FROM t").fetchone() == (0,)
