"""DataFusion plans a statement once and converts a condition once, however many partitions a table has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionConfig, SessionContext
from lance_engine import expr
from lance_engine.errors import LanceError
from lance_engine.scan.pool import num_threads

import lance_sql
from lance_sql.engines.datafusion.session import DataFusionEngine
from lance_sql.engines.partitions import partitions
from lance_sql.engines.statement_run import StatementRun
from lance_sql.engines.table import EngineTable

ROWS = 300_000


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    directory = tmp_path_factory.mktemp("numbers")
    table = pa.table({"x": np.arange(ROWS), "text": [f"text {n % 7}" for n in range(ROWS)]})
    lance_sql.write(table, directory / "t.lance")
    return directory


@pytest.fixture
def planned(monkeypatch):
    """The texts that DataFusion plans."""
    texts = []
    plan = DataFusionEngine._plan
    monkeypatch.setattr(
        DataFusionEngine, "_plan", lambda engine, text, *rest: texts.append(text) or plan(engine, text, *rest)
    )
    return texts


@pytest.fixture
def converted(monkeypatch):
    """The expressions of DataFusion that are converted to conditions."""
    expressions = []
    convert = expr.arrow_filter
    monkeypatch.setattr(
        expr,
        "arrow_filter",
        lambda expression, schema: expressions.append(str(expression)) or convert(expression, schema),
    )
    return expressions


def test_a_statement_with_one_scan_is_planned_once(numbers, planned):
    text = "SELECT x % 7 AS m, count(*) AS n FROM t WHERE x >= 10 GROUP BY m ORDER BY m"
    with lance_sql.connect(numbers, engine="datafusion") as connection:
        result = connection.sql(text)
        assert sum(result.arrow()["n"].to_pylist()) == ROWS - 10
        assert [batch.num_rows for batch in connection.sql(text)] == [7]
    assert planned == [text, text]


def test_a_join_is_planned_again_over_small_sides(numbers, planned):
    text = "SELECT count(*) FROM t JOIN t AS u USING (x) WHERE t.x < 5"
    with lance_sql.connect(numbers, engine="datafusion") as connection:
        assert connection.sql(text).fetchall() == [(5,)]
    assert planned[:2] == [text, text]


def test_a_condition_is_converted_once_for_all_partitions(numbers, converted):
    own = SessionContext(SessionConfig().with_target_partitions(4))
    with lance_sql.connect(numbers, datafusion=own) as connection:
        text = "SELECT count(*) FROM t WHERE x < 1000"
        assert "number_of_fragments=4" in connection.explain(text).plan
        del converted[:]
        first = connection.sql(text)
        assert first.fetchall() == [(1000,)]
        second = connection.sql(text)
        assert second.fetchall() == [(1000,)]
        assert converted == []
        assert connection.sql("SELECT count(*) FROM t WHERE x < 2000").fetchall() == [(2000,)]
        assert len(converted) == 1
    # Each run has metrics of its own.
    decoded = [[scan["rows_decoded"] for scan in result.metrics["scans"]] for result in (first, second)]
    assert decoded[0] == decoded[1]
    assert sum(decoded[0]) > 0


def test_conditions_that_arrow_compares_as_equal(tmp_path):
    lance_sql.write(pa.table({"x": [-0.0, 0.0, 1.0]}), tmp_path / "t.lance")
    table = EngineTable(lance_sql.open(tmp_path / "t.lance"), total_order=True)
    # infinity and -infinity
    most, least = (pc.divide(pc.scalar(1.0), pc.scalar(zero)) for zero in (0.0, -0.0))
    assert (pc.field("x") < most).equals(pc.field("x") < least)
    for _ in range(2):
        assert table.scan(filter=pc.field("x") < most, run=None).count() == 3
        assert table.scan(filter=pc.field("x") < least, run=None).count() == 0


def test_few_conditions_are_kept(numbers):
    table = EngineTable(lance_sql.open(numbers / "t.lance"), total_order=True)
    for bound in range(50):
        assert table.scan(["x"], pc.field("x") < pc.scalar(bound), run=None).count() == bound
    assert len(table.filters._plans) == 8


@pytest.mark.parametrize(("processors", "threads"), [(2, 0), (4, 0), (8, None)])
def test_partitions_decode_on_the_threads_of_the_engine(numbers, monkeypatch, processors, threads):
    monkeypatch.setattr("lance_sql.engines.partitions._PROCESSORS", processors)
    table = EngineTable(lance_sql.open(numbers / "t.lance"))
    run = StatementRun()
    run.has_one_scan = True
    found = [part.scanner(columns=["x"]) for part in partitions(table, 4, run)]
    assert len(found) == 4
    # With fewer partitions than processors, other threads decode ahead.
    assert {scan._scan.scanner.threads for scan in found} == {num_threads() if threads is None else threads}
    assert sum(batch.num_rows for scan in found for batch in scan.to_batches()) == ROWS


@pytest.mark.parametrize(
    ("text", "helps"),
    [
        ("SELECT sum(x) FROM t", False),
        ("SELECT sum(a.x) FROM t a JOIN t b ON a.x = b.x + 1", True),
        ("SELECT x FROM t UNION ALL SELECT x FROM t", True),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_scans_of_joins_are_helped_by_other_threads(numbers, text, helps, streams):
    """One thread of the engine would decode a partition to its end before another begins with the next."""
    with lance_sql.connect(numbers, engine="datafusion", materialize_bytes=0) as connection:
        result = connection.sql(text)
        assert sum(batch.num_rows for batch in result) if streams else result.arrow().num_rows
        threads = {scan.scanner.threads for scan in result._last_run.scans}
        assert (0 in threads) is not helps  # 0 where the thread that takes a batch decodes it


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM t WHERE id = CAST('x' AS BIGINT)", r"^Cast error: Cannot cast string 'x'"),
        ("SELECT * FROM t LIMIT -1", r"^LIMIT must be >= 0"),
        ("SELECT * FROM t LIMIT 'a'", r"^Expected LIMIT to be an integer"),
    ],
)
def test_errors_leave_out_the_steps_of_the_planner(tmp_path: Path, text: str, message: str) -> None:
    lance_sql.write(pa.table({"id": [1, 2], "name": ["a", None]}), tmp_path / "t.lance")
    session = lance_sql.connect(tmp_path, engine="datafusion")
    with session, pytest.raises(LanceError, match=message):
        session.sql(text).fetchall()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT id + 1 FROM t", ["id + Int64(1)"]),
        ("SELECT id + 1, max(a.name) FROM '{path}' AS a GROUP BY 1", ["id + Int64(1)", "max(name)"]),
        ("SELECT id + 1, id AS x FROM '{path}'", ["id + Int64(1)", "x"]),
        ('SELECT t.id + "A b".id FROM t JOIN t AS "A b" ON t.id = "A b".id', ["id + id"]),
    ],
)
def test_names_of_new_columns_do_not_name_tables(tmp_path, query, names):
    lance_sql.write({"id": [1, 2], "name": ["a", "b"]}, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        session.sql(f"CREATE TABLE new AS {query.format(path=tmp_path / 't.lance')}")
        assert lance_sql.open(tmp_path / "new.lance").schema.names == names


@pytest.mark.parametrize("query", ['SELECT id AS "t.x" FROM t', "SELECT id + 1.5 FROM t"])
def test_other_dots_in_names_are_refused(tmp_path, query):
    lance_sql.write({"id": [1, 2]}, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        with pytest.raises(lance_sql.LanceError, match="contains a dot"):
            session.sql(f"CREATE TABLE new AS {query}")
        assert session.tables() == ["t"]


def test_dialects_in_which_quoted_names_are_texts(tmp_path):
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS a, 'x' AS `b c`")
        session.sql("UPDATE t SET a = 2 WHERE \"b c\" = 'x'")
        for dialect in ("mysql", "bigquery"):
            session.sql(f"SET datafusion.sql_parser.dialect = '{dialect}'")
            assert session.sql('SELECT a FROM t WHERE `b c` = "x"').fetchall() == [(2,)]
            for statement in ('DELETE FROM t WHERE `b c` = "x"', 'UPDATE t SET a = 3 WHERE "b c" = "b c"'):
                with pytest.raises(LanceError, match="is a text in this dialect"):
                    session.sql(statement)
        session.sql("UPDATE `t` SET `b c` = 'y' WHERE `b c` = 'x'")
        assert session.sql("SELECT * FROM t").fetchall() == [(2, "y")]


@pytest.mark.parametrize("statement", ['CREATE TABLE n AS SELECT 1 AS ""', 'CREATE TABLE n ("" INT)'])
def test_columns_have_names(tmp_path, statement):
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        with pytest.raises(LanceError, match=r"empty name|zero-length"):
            session.sql(statement)
        assert session.table_names() == []
