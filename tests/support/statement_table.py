"""The tables of statements in ``docs/sql-support.md``: each row is run, and says what became of it.

``python tests/support/statement_table.py`` writes them again.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa
from conformance_page import PAGE, with_part
from lance_engine.errors import LanceError

import lance_sql
import lance_sql.duckdb
import lance_sql.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN: Final = "<!-- statements: begin -->"
END: Final = "<!-- statements: end -->"

#: Statements of DuckDB's grammar, each run in a session of its own over a directory with the datasets `t` and
#: `other`; and what must be so afterwards, as a query and its rows.
STATEMENTS: Final[list[tuple[str, str, list[tuple[object, ...]]]]] = [
    ("ALTER TABLE t ADD COLUMN IF NOT EXISTS y INT", "SELECT count(*) FROM t WHERE y IS NULL", [(3,)]),
    ("ALTER TABLE t DROP COLUMN x", "SELECT * FROM t WHERE id = 1", [(1, "a")]),
    ("ALTER TABLE t ADD COLUMN ID INT", "", []),
    ("ALTER TABLE t RENAME COLUMN x TO z", "SELECT z FROM t WHERE id = 1", [(1.0,)]),
    ("ALTER TABLE t ALTER x TYPE FLOAT", "SELECT typeof(x) FROM t LIMIT 1", [("FLOAT",)]),
    ("ALTER TABLE t ALTER x TYPE VARCHAR", "SELECT x FROM t WHERE id = 1", [("1.0",)]),
    ("ALTER TABLE t ALTER x TYPE VARCHAR USING name || id", "SELECT x FROM t WHERE id = 1", [("a1",)]),
    ("ALTER TABLE t ALTER id TYPE DATE", "", []),
    ("ALTER TABLE t RENAME TO u", "SELECT count(*) FROM u", [(3,)]),
    (
        "ALTER TABLE t ADD PRIMARY KEY (id)",
        "SELECT constraint_name FROM t.constraints",
        [("id_pkey",), ("id_not_null",)],
    ),
    ("ALTER TABLE t ADD UNIQUE (name, x)", "SELECT constraint_name FROM t.constraints", [("name_x_key",)]),
    ("ALTER TABLE t ADD UNIQUE (y)", "", []),
    (
        "ALTER TABLE t SET UNENFORCED PRIMARY KEY (id)",
        "SELECT enforced FROM t.constraints LIMIT 1",
        [(False,)],
    ),
    ("ALTER TABLE t ALTER x SET DEFAULT 5", "SELECT count(*) FROM t", [(3,)]),
    ("ALTER TABLE t ALTER x SET NOT NULL", "SELECT count(*) FROM t", [(3,)]),
    ("ALTER TABLE t ADD CHECK (x > 0)", "SELECT constraint_name FROM t.constraints", [("x_check",)]),
    ("ALTER TABLE t ADD CHECK (x > 1)", "", []),
    ("ALTER TABLE t ADD CHECK (x > (SELECT 0))", "", []),
    ("ALTER TABLE t SET SORTED BY (x)", "", []),
    ("ALTER TABLE IF EXISTS nosuch ADD COLUMN y INT", "SELECT count(*) FROM t", [(3,)]),
    ("ALTER VIEW t RENAME TO u", "", []),
    ("ANALYZE t", "", []),
    ("ATTACH ':memory:' AS m", "SELECT count(*) FROM t", [(3,)]),
    ("ATTACH '.' AS ns (TYPE LANCE)", "SELECT count(*) FROM t", [(3,)]),
    ("ATTACH '.' AS ns (TYPE LANCE); DETACH ns", "SELECT count(*) FROM t", [(3,)]),
    ("CREATE SCHEMA lance.s", "SELECT count(*) FROM t", [(3,)]),
    ("SHOW ALL TABLES", "SELECT count(*) FROM t", [(3,)]),
    ("SELECT * FROM information_schema.tables", "SELECT count(*) FROM lance.main.t", [(3,)]),
    ("USE lance.main", "SELECT count(*) FROM t", [(3,)]),
    ("BEGIN", "SELECT count(*) FROM t", [(3,)]),
    ("BEGIN; DELETE FROM t; ROLLBACK", "SELECT count(*) FROM t", [(3,)]),
    ("BEGIN; DELETE FROM t; COMMIT", "SELECT count(*) FROM t", [(0,)]),
    ("BEGIN; OPTIMIZE t", "", []),
    ("CALL restore('t', 1)", "SELECT count(*) FROM t", [(3,)]),
    ("CHECKPOINT", "SELECT count(*) FROM t", [(3,)]),
    ("COMMENT ON TABLE t IS 'text'", "SELECT count(*) FROM t", [(3,)]),
    ("COMMENT ON COLUMN t.x IS 'text'", "SELECT count(*) FROM t", [(3,)]),
    ("COMMENT ON VIEW t IS 'text'", "", []),
    ("COMMIT", "", []),
    ("COPY t FROM 'x.csv' (HEADER)", "SELECT count(*) FROM t", [(4,)]),
    ("COPY t TO 'o.csv'", "SELECT count(*) FROM 'o.csv'", [(3,)]),
    ("COPY t TO 'o.lance'", "SELECT count(*) FROM 'o.lance'", [(3,)]),
    ("CREATE INDEX i ON t (id)", "SELECT x FROM t WHERE id = 2", [(2.0,)]),
    ("CREATE INDEX i ON t (id) WITH (nonsense = 7)", "", []),
    ("CREATE UNIQUE INDEX i ON t (id)", "", []),
    ("CREATE INDEX i ON t (lower(name))", "", []),
    ("CREATE INDEX i ON t (id) WHERE id > 1", "", []),
    ("CREATE MACRO m(a) AS a + 1", "SELECT m(id) FROM t WHERE id = 1", [(2,)]),
    ("CREATE SCHEMA s", "SELECT count(*) FROM t", [(3,)]),
    ("CREATE SEQUENCE s", "SELECT nextval('s')", [(1,)]),
    ("CREATE TABLE n (a INT NOT NULL, b INT DEFAULT 3)", "SELECT count(*) FROM n", [(0,)]),
    ("CREATE TABLE n AS SELECT * FROM t WITH NO DATA", "SELECT count(*) FROM n", [(0,)]),
    ("CREATE OR REPLACE TABLE t AS SELECT 1 AS a", "SELECT * FROM t", [(1,)]),
    ("CREATE TABLE n AS FROM t", "SELECT count(*) FROM n", [(3,)]),
    ("CREATE TABLE n (a, b) AS SELECT 1, 2", "SELECT b FROM n", [(2,)]),
    ("CREATE TABLE n (a VARCHAR COLLATE NOCASE)", "", []),
    ("CREATE TABLE n (a ENUM('x'))", "SELECT column_type FROM (DESCRIBE n)", [("ENUM('x')",)]),
    ("CREATE TABLE n (a UNION(x INT))", "SELECT column_type FROM (DESCRIBE n)", [("UNION(x INTEGER)",)]),
    ("CREATE TABLE n (LIKE t)", "", []),
    ("CREATE TABLE n (a INT UNIQUE)", "SELECT constraint_text FROM n.constraints", [("UNIQUE(a)",)]),
    ("CREATE TABLE IF NOT EXISTS t (a INT)", "SELECT count(*) FROM t", [(3,)]),
    ("CREATE TABLE n (a INT PRIMARY KEY)", "DESCRIBE n", [("a", "INTEGER", "NO", "PRI", None, None)]),
    (
        "CREATE TABLE n (a INT CHECK (a > 0))",
        "SELECT constraint_text FROM n.constraints",
        [("CHECK(a > 0)",)],
    ),
    ("CREATE TABLE n (a INT REFERENCES t (id))", "", []),
    ("CREATE TABLE n (a INT, b INT GENERATED ALWAYS AS (a + 1))", "", []),
    ("CREATE TABLE n (a BIT)", "SELECT column_type FROM (DESCRIBE n)", [("BIT",)]),
    ("CREATE TABLE n (a TIMETZ)", "SELECT column_type FROM (DESCRIBE n)", [("TIME WITH TIME ZONE",)]),
    ("CREATE TABLE n AS SELECT MAP {} AS m", "", []),
    ("CREATE TEMP TABLE n AS SELECT 1 AS a", "SELECT * FROM n", [(1,)]),
    ("CREATE TEMP TABLE t AS SELECT 1 AS a", "", []),
    ("CREATE TYPE mood AS ENUM ('good')", "SELECT count(*) FROM t", [(3,)]),
    ("CREATE VIEW v AS SELECT id FROM t", "SELECT count(*) FROM v", [(3,)]),
    ("CREATE VIEW t AS SELECT 1 AS a", "", []),
    ("CREATE OR REPLACE VIEW t AS SELECT 1 AS a", "", []),
    ("CREATE SECRET s (TYPE http)", "SELECT count(*) FROM t", [(3,)]),
    ("DEALLOCATE p", "SELECT count(*) FROM t", [(3,)]),
    ("DELETE FROM t", "SELECT count(*) FROM t", [(0,)]),
    ("DELETE FROM t WHERE id = 1 RETURNING id", "SELECT count(*) FROM t", [(2,)]),
    ("DELETE FROM t USING other WHERE t.id = other.id", "SELECT count(*) FROM t", [(2,)]),
    ("DELETE FROM t LIMIT 1", "", []),
    ("DELETE t WHERE id = 1", "", []),
    ("DELETE FROM t AT (VERSION => 1)", "", []),
    ("DESCRIBE t", "SELECT count(*) FROM t", [(3,)]),
    ("DROP INDEX nosuch", "", []),
    ("DROP INDEX IF EXISTS nosuch", "SELECT count(*) FROM t", [(3,)]),
    ("DROP SCHEMA IF EXISTS s", "SELECT count(*) FROM t", [(3,)]),
    ("DROP TABLE t", "SELECT count(*) FROM other", [(1,)]),
    ("DROP TABLE nosuch", "", []),
    ("DROP TABLE IF EXISTS nosuch", "SELECT count(*) FROM t", [(3,)]),
    ("DROP TABLE nosuch, t", "", []),
    ("DROP VIEW t", "", []),
    ("EXPLAIN SELECT * FROM t", "SELECT count(*) FROM t", [(3,)]),
    ("EXPLAIN ANALYZE SELECT * FROM t", "SELECT count(*) FROM t", [(3,)]),
    ("EXPLAIN DELETE FROM t", "", []),
    ("EXPORT DATABASE 'folder'", "SELECT count(*) FROM 'folder/t.csv'", [(3,)]),
    (
        "EXPORT DATABASE 'folder'; DROP TABLE t; DROP TABLE other; IMPORT DATABASE 'folder'",
        "SELECT count(*) FROM t",
        [(3,)],
    ),
    ("FROM t", "SELECT count(*) FROM t", [(3,)]),
    ("INSERT INTO t VALUES (4, 'd', DEFAULT) RETURNING id", "SELECT count(*) FROM t", [(4,)]),
    ("INSERT INTO t (id) VALUES (4)", "SELECT count(*) FROM t", [(4,)]),
    ("INSERT INTO t DEFAULT VALUES", "SELECT count(*) FROM t", [(4,)]),
    ("INSERT INTO t FROM t", "SELECT count(*) FROM t", [(6,)]),
    ("INSERT INTO t BY NAME SELECT 4 AS id", "SELECT count(*) FROM t", [(4,)]),
    ("INSERT INTO t BY POSITION SELECT 4, 'd', 1.0", "SELECT count(*) FROM t", [(4,)]),
    ("INSERT OR REPLACE INTO t VALUES (1, 'z', 1.0)", "", []),
    ("INSERT INTO t VALUES (1, 'z', 1.0) ON CONFLICT DO NOTHING", "", []),
    ("INSERT OVERWRITE t VALUES (1, 'z', 1.0)", "", []),
    ("INSERT INTO t (VALUES (9, 'z', 1.0))", "SELECT count(*) FROM t", [(4,)]),
    (
        "MERGE INTO t USING other ON t.id = other.id WHEN MATCHED THEN DELETE RETURNING *",
        "SELECT count(*) FROM t",
        [(2,)],
    ),
    (
        "MERGE INTO t USING other ON t.id = other.id WHEN MATCHED THEN DELETE RETURNING merge_action, id",
        "SELECT count(*) FROM t",
        [(2,)],
    ),
    (
        "MERGE INTO t USING other ON t.id > other.id WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
        "SELECT count(*) FROM t",
        [(3,)],
    ),
    ("MERGE INTO t USING (VALUES (1), (1)) o(id) USING (id) WHEN MATCHED THEN DELETE", "", []),
    (
        "MERGE INTO t USING other ON t.id = other.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "SELECT count(*) FROM t",
        [(1,)],
    ),
    ("MERGE INTO t USING other USING (id) WHEN MATCHED THEN UPDATE", "SELECT count(*) FROM t", [(3,)]),
    ("MERGE INTO t USING other USING (id) WHEN NOT MATCHED THEN INSERT", "SELECT count(*) FROM t", [(3,)]),
    ("MERGE INTO t USING other ON t.id = other.id WHEN MATCHED THEN ERROR", "", []),
    ("OPTIMIZE t", "SELECT count(*) FROM t", [(3,)]),
    ("PIVOT t ON name USING sum(x)", "SELECT count(*) FROM t", [(3,)]),
    ("PRAGMA table_info('t')", "SELECT count(*) FROM t", [(3,)]),
    ("PREPARE p AS SELECT * FROM t WHERE id = ?", "EXECUTE p(1)", [(1, "a", 1.0)]),
    ("PREPARE p AS INSERT INTO t VALUES (?, 'd', 1.0)", "EXECUTE p(9)", [(1,)]),
    ("WITH n AS (DELETE FROM t RETURNING id) SELECT * FROM n", "", []),
    ("PRAGMA version", "SELECT count(*) FROM t", [(3,)]),
    ("RESET threads", "SELECT count(*) FROM t", [(3,)]),
    ("ROLLBACK", "", []),
    ("SELECT * FROM t", "SELECT count(*) FROM t", [(3,)]),
    ("SET threads = 2", "SELECT count(*) FROM t", [(3,)]),
    ("SET VARIABLE v = 3", "SELECT getvariable('v')", [(3,)]),
    ("SHOW TABLES", "SELECT count(*) FROM t", [(3,)]),
    ("SHOW DATABASES", "SELECT count(*) FROM t", [(3,)]),
    ("SHOW t", "SELECT count(*) FROM t", [(3,)]),
    ("SUMMARIZE t", "SELECT count(*) FROM t", [(3,)]),
    ("TABLE t", "SELECT count(*) FROM t", [(3,)]),
    ("TRUNCATE t", "SELECT count(*) FROM t", [(0,)]),
    ("TRUNCATE t, other", "", []),
    ("UNPIVOT t ON id, x INTO NAME n VALUE v", "SELECT count(*) FROM t", [(3,)]),
    ("UPDATE t SET x = DEFAULT WHERE id = 1", "SELECT count(*) FROM t WHERE x IS NULL", [(1,)]),
    ("UPDATE t SET x = 1, x = 2", "", []),
    ("UPDATE t SET x = 9 FROM other WHERE t.id = other.id RETURNING x", "SELECT max(x) FROM t", [(9.0,)]),
    (
        "UPDATE t SET x = 9 FROM other JOIN other b USING (id) WHERE t.id = other.id",
        "SELECT max(x) FROM t",
        [(9.0,)],
    ),
    ("UPDATE t SET (name, x) = ('z', 0) WHERE id = 1", "SELECT name, x FROM t WHERE id = 1", [("z", 0.0)]),
    ("UPDATE t SET x = (SELECT max(id) FROM other)", "SELECT min(x) FROM t", [(1.0,)]),
    ("USE memory", "SELECT count(*) FROM lance.t", [(3,)]),
    ("VACUUM t RETAIN 7 DAYS", "SELECT count(*) FROM t", [(3,)]),
    ("VACUUM ANALYZE t", "", []),
    ("VALUES (1)", "SELECT count(*) FROM t", [(3,)]),
    ("WITH q AS (SELECT 4 AS id) INSERT INTO t SELECT id, 'd', 1.0 FROM q", "SELECT count(*) FROM t", [(4,)]),
    ("WITH q AS (SELECT 1 AS id) DELETE FROM t USING q WHERE t.id = q.id", "SELECT count(*) FROM t", [(2,)]),
]


def _prepared(folder: Path, statement: str) -> str:
    """The folder with its datasets, and the statement with its files there."""
    columns = {"id": [1, 2, 3], "name": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}
    if not (folder / "t.lance").exists():
        lance_sql.write(pa.table(columns), folder / "t.lance")
        lance_sql.write(pa.table({"id": [1]}), folder / "other.lance")
        (folder / "x.csv").write_text("id,name,x\n7,z,1.5\n")
    return _placed(folder, statement)


def _placed(folder: Path, statement: str) -> str:
    for name in ("x.csv", "o.csv", "o.lance", "folder", "folder/t.csv"):
        statement = statement.replace(f"'{name}'", f"'{folder}/{name}'")
    return statement


def outcome(statement: str, check: str, expected: list[tuple[object, ...]], folder: Path) -> str:
    """Why a statement is refused, "" if it works; AssertionError if that is not expected."""
    statement, check = _prepared(folder, statement), _placed(folder, check)
    before = lance_sql.open(folder / "t.lance").version
    with lance_sql.connect(folder) as session:
        try:
            session.sql(statement).arrow()
        except LanceError as error:
            if check:
                raise AssertionError(statement) from error
            if lance_sql.open(folder / "t.lance").version != before:
                raise AssertionError(f"{statement} was refused, and changed something") from error
            return error.message + (f". {error.remedy}" if error.remedy else "")
        assert check, f"{statement} is not refused"
        found = session.sql(check).fetchall()
        assert found == expected, f"{statement}: {found}"
    return ""


#: What runs a statement in a folder, and returns its rows.
Run = Callable[[str], list[tuple[object, ...]]]


@contextmanager
def own_connection(folder: Path) -> Iterator[Run]:
    """A DuckDB connection in which the datasets of the folder are installed."""
    with duckdb.connect() as connection:
        lance_sql.duckdb.install(connection, folder)
        yield lambda text: connection.execute(text).fetchall()


@contextmanager
def datafusion_session(folder: Path) -> Iterator[Run]:
    with lance_sql.connect(folder, engine="datafusion") as session:
        yield lambda text: session.sql(text).fetchall()


def spark_catalog(spark: SparkSession) -> Callable[[Path], AbstractContextManager[Run]]:
    """A catalog of Spark over the folder: Spark keeps those that it knows, so that each has its own name."""

    @contextmanager
    def catalog(folder: Path) -> Iterator[Run]:
        name = f"c{folder.name}"
        spark.conf.set(f"spark.sql.catalog.{name}", "lancesql.spark.LanceCatalog")
        spark.conf.set(f"spark.sql.catalog.{name}.path", str(folder))
        spark.sql(f"USE {name}")
        try:
            yield lambda text: [tuple(row) for part in text.split(";") for row in spark.sql(part).collect()]
        finally:
            spark.sql("USE spark_catalog")

    return catalog


def refusals(engine: Callable[[Path], AbstractContextManager[Run]]) -> dict[str, list[str]]:
    """Why an engine refuses statements that sessions on DuckDB run -> those statements.

    Where it runs them, a session on DuckDB or itself then shows the same effect.
    """
    found: dict[str, list[str]] = {}
    for statement, check, expected in STATEMENTS:
        if not check:
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            text = _prepared(folder, statement)
            before = lance_sql.open(folder / "t.lance").version
            with engine(folder) as run:
                try:
                    run(text)
                    reason = "" if _has_effect(run, folder, check, expected) else "It has another effect"
                except Exception as error:
                    if lance_sql.open(folder / "t.lance").version != before:
                        raise AssertionError(f"{statement} was refused, and changed something") from error
                    reason = _reason(error, text)
                if reason:
                    found.setdefault(reason, []).append(statement)
    return found


def _has_effect(run: Run, folder: Path, check: str, expected: list[tuple[object, ...]]) -> bool:
    check = _placed(folder, check)
    with lance_sql.connect(folder) as session:
        for ask in (lambda text: session.sql(text).fetchall(), run):
            try:
                if ask(check) == expected:
                    return True
            except Exception:  # what the statement made may be of the engine, or in words of the other one
                continue
    return False


def _reason(error: Exception, statement: str) -> str:
    """The first sentence of an error of any engine, and the remedy of one of ours, without what varies."""
    text = str(error).strip().split("\n")[0].replace(statement, "")
    if isinstance(error, LanceError):
        text = error.message.replace(statement, "") + (f". {error.remedy}" if error.remedy else "")
    elif text.startswith("["):  # Spark's class of the error says enough
        text = text.split(" ")[0].strip("[]").replace("_", " ").replace(".", ": ").lower()
    text = re.sub(r"^(\w+ on \S+, which is a dataset|[A-Z ]+ needs a session): t", "T", text.split("\n")[0])
    return re.sub(r",? (found: \S+|LINE 1.*|line 1 .*)$", "", text).strip(" :.;")


def _rows(title: str, engine: Callable[[Path], AbstractContextManager[Run]]) -> list[str]:
    rows = []
    for reason, statements in refusals(engine).items():
        listed = ", ".join(f"`{statement}`" for statement in statements)
        rows.append(f"| {title} | {cell(reason)} | {cell(listed)} |")
    return rows


def table() -> str:
    """What is refused, and how many statements are not: each of them is run."""
    lines, works = ["| statement | refused, because |", "|---|---|"], 0
    for statement, check, expected in STATEMENTS:
        with tempfile.TemporaryDirectory() as folder:
            refusal = outcome(statement, check, expected, Path(folder))
        works += not refusal
        if refusal:
            lines.append(f"| {cell(f'`{statement}`')} | {cell(refusal)} |")
    return f"{works} statements work, these {len(lines) - 2} are refused:\n\n" + "\n".join(lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def page(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


def spark_rows(text: str) -> list[str]:
    """The rows about Spark in the page."""
    _, _, made = text.partition("<!-- statements on engines: begin -->")
    return [line for line in made.splitlines() if line.startswith("| Spark |")]


def engines_page(text: str, about_spark: list[str]) -> str:
    """The page with the table of other engines as it is now, and these rows about Spark."""
    lines = ["| engine | refused, because | statements |", "|---|---|---|"]
    lines += _rows("DataFusion", datafusion_session)
    lines += _rows("your own DuckDB connection", own_connection)
    return with_part(text, "statements on engines", "\n".join([*lines, *about_spark]) + "\n")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    spark = spark_catalog(lance_sql.spark.local_session(memory="2g"))
    PAGE.write_text(engines_page(PAGE.read_text(), _rows("Spark", spark)))
