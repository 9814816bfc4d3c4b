"""Which conditions DuckDB passes to scans, why, and how it plans afterwards."""

from __future__ import annotations

import duckdb
import fsspec
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.expr.from_sql import parse_sql

import lance_sql
from lance_sql.engines import pushdown
from lance_sql.engines.base import Decision
from lance_sql.engines.duckdb import session as duckdb_session

ROWS = 300_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """`sorted` ascends, so that zone maps tell its values apart; `key` and `group` are everywhere."""
    numbers = np.arange(ROWS)
    table = pa.table(
        {
            "key": numbers * 7919 % ROWS,
            "group": numbers % 5,
            "note": [f"n{i}" for i in range(ROWS)],
            "sorted": numbers,
        }
    )
    return lance_sql.write(table, tmp_path_factory.mktemp("large") / "t.lance", max_rows_per_file=110_000)


def decide(dataset, condition: str) -> Decision:
    return pushdown.decide(pushdown.Condition(dataset, parse_sql(condition, dataset.schema)))


def plan(connection, text: str) -> str:
    return connection.sql("EXPLAIN " + text).fetchall()[0][1]


@pytest.mark.parametrize(
    ("predicate", "pushed", "rows"),
    [
        ("key = 123", True, 1),
        ("key BETWEEN 1000 AND 1999", True, 1000),
        ("key IN (5, 6) OR key > 299990", True, 11),
        ("key < 45000", True, 45_000),
        ('"group" IN (3, 4)', False, 120_000),
        ('sorted >= 150000 AND key < 45000 AND "group" IN (3, 4)', True, None),
        ("key < 200000", False, 200_000),
        ("note LIKE '%99999'", False, 3),
        ("note IS NULL", True, 0),
        ("sorted < 20000", True, 20_000),
        ("sorted >= 100000", True, 200_000),
        ("sorted >= 0", True, 300_000),
    ],
)
def test_conditions_over_large_tables(large, predicate, pushed, rows):
    with duckdb.connect() as connection:
        lance_sql.duckdb.register(connection, "t", large)
        assert ("Filters:" in plan(connection, f"SELECT note FROM t WHERE {predicate}")) == pushed
        wanted = large.scan(columns=[], filter=predicate).count() if rows is None else rows
        assert connection.sql(f"SELECT count(*), count(note) FROM t WHERE {predicate}").fetchall() == [
            (wanted, wanted)
        ]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("sorted < 20000", "zone maps keep 8.2 % of the rows"),
        ("sorted < 150000", "zone maps decide all but 2.7 % of the rows"),
        ("key = 123", "0 % of sampled rows pass"),
        ("\"group\" <> 3", "80 % of sampled rows pass"),
        ("_rowid < 100", "rows are looked up by id"),
    ],
)  # fmt: skip
def test_reasons(large, condition, reason):
    schema = large.schema.append(pa.field("_rowid", pa.uint64()))
    found = pushdown.decide(pushdown.Condition(large, parse_sql(condition, schema)))
    assert (found.pushed, found.reason) == ("80 %" not in reason, reason)


def test_indices_decide(tmp_path):
    numbers = np.arange(ROWS)
    table = pa.table({"key": numbers * 7919 % ROWS, "text": [f"some text {i}" for i in range(ROWS)]})
    dataset = lance_sql.write(table, tmp_path / "t.lance").create_index("key", "BTREE")
    assert decide(dataset, "key = 5").reason == "indices keep 0.00033 % of the rows"
    assert decide(dataset, "key = 5").share == 1 / ROWS


def test_small_tables_are_left_to_duckdb(warehouse):
    dataset = lance_sql.open(warehouse / "measurements.lance")
    assert decide(dataset, "id < 5") == Decision("id < 5", False, "the table is small")
    with duckdb.connect() as connection:
        lance_sql.duckdb.register(connection, "m", dataset)
        assert "Expression: id < 5" in plan(connection, "SELECT id FROM m WHERE id < 5")
        assert connection.sql("SELECT count(*) FROM m WHERE id < 5").fetchall() == [(5,)]


def test_statistics_that_cannot_be_read_decline(large, monkeypatch):
    """The scan reports the problem, not the planner."""

    def fail(*arguments):
        raise CorruptFileError("no statistics today")

    monkeypatch.setattr(pushdown, "_pruned", fail)
    assert decide(large, "key = 123").reason == "table statistics are unavailable"
    with duckdb.connect() as connection:
        lance_sql.duckdb.register(connection, "t", large)
        assert connection.sql("SELECT count(*) FROM t WHERE key = 123").fetchall() == [(1,)]


def test_no_sample_is_read_from_remote_storage(large):
    fsspec.filesystem("memory").put(large.uri, "/sample.lance", recursive=True)
    remote = lance_sql.open("memory://sample.lance")
    assert decide(large, "key = -1").pushed
    assert decide(remote, "key = 150000").reason.endswith("remote files are not sampled")
    assert decide(remote, "sorted < 20000").pushed


def test_a_sample_of_many_fragments_is_not_of_all(tmp_path, monkeypatch):
    dataset = lance_sql.write(pa.table({"a": range(1000)}), tmp_path / "n.lance", max_rows_per_file=2)
    scans = []
    scan = lance_sql.Dataset.scan
    monkeypatch.setattr(
        lance_sql.Dataset, "scan", lambda self, **given: scans.append(given) or scan(self, **given)
    )
    condition = parse_sql("a < 500", dataset.schema)
    plan = pushdown.Condition(dataset, condition).plan
    assert pushdown.sampled_share(dataset, plan) == pytest.approx(0.5, abs=0.02)
    assert 50 <= len(scans[0]["splits"]) <= 64
    empty = lance_sql.write(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "empty.lance")
    assert pushdown.sampled_share(empty, pushdown.Condition(empty, condition).plan) == 0


def test_explanations_tell_why(large):
    with lance_sql.connect() as connection:
        connection.register("t", large)
        text = str(
            connection.explain(
                "SELECT count(*) FROM t WHERE sorted < 20000 AND \"group\" <> 3 AND note LIKE '%7'"
            )
        )
    assert "  why       sorted < 20000: pushed, zone maps keep 8.2 % of the rows" in text
    assert '  why       "group" <> 3: left to duckdb, 80 % of sampled rows pass' in text


def test_predicates_on_widened_columns_are_left(tmp_path):
    dataset = lance_sql.write(pa.table({"half": pa.array([1.5, None], pa.float16())}), tmp_path / "t.lance")
    with lance_sql.connect() as connection:
        connection.register("t", dataset)
        (scan,) = connection.explain("SELECT * FROM t WHERE half > 1").scans
    assert [(found.pushed, found.reason) for found in scan.decisions] == [
        (False, "half is stored with a different type")
    ]


@pytest.fixture
def joined(large, tmp_path):
    other = lance_sql.write(
        pa.table({"key": np.arange(ROWS), "text": [f"some text {i}" for i in range(ROWS)]}),
        tmp_path / "o.lance",
    )
    with lance_sql.connect() as connection:
        connection.register("t", large)
        connection.register("o", other)
        yield connection


def test_a_join_is_planned_with_what_scans_leave(joined):
    text = "SELECT count(*) FROM t JOIN o USING (key) WHERE t.sorted < $1"
    explanation = joined.explain(text, [20_000])
    assert {scan.name for scan in explanation.scans} == {"t", "o"}
    assert "~24,576 rows" in explanation.plan
    assert "~300,000 rows" in explanation.plan
    assert joined.sql(text, [20_000]).fetchall() == [(20_000,)]
    analyzed = joined.explain(text, [20_000], analyze=True)
    assert {run["table"]: run["rows_out"] for run in analyzed.runs} == {"t": 20_000, "o": ROWS}


def test_the_counts_of_one_statement_are_not_those_of_the_next(joined):
    text = "SELECT count(*) FROM t JOIN o USING (key) WHERE t.sorted < 20000"
    assert joined.sql(text).fetchall() == [(20_000,)]
    assert "~24,576 rows" not in joined.explain("SELECT count(*) FROM t JOIN o USING (key)").plan


def test_a_join_that_runs_again_is_not_planned_beforehand_again(joined, monkeypatch):
    explained = []

    def expected_rows(planned):
        explained.append(len(planned))
        return expected(planned)

    expected = duckdb_session.expected_rows
    monkeypatch.setattr(duckdb_session, "expected_rows", expected_rows)
    text = "SELECT count(*) FROM t JOIN o USING (key) WHERE t.sorted < ?"
    for bound in (20_000, 20_000, 30_000):
        assert joined.sql(text, [bound]).fetchall() == [(bound,)]
    assert explained == [2, 2]


def test_scans_of_one_table_are_not_confused(joined):
    text = "SELECT count(*) FROM t a JOIN t b USING (key) WHERE a.sorted < 20000 AND b.sorted >= 100000"
    assert "~24,576 rows" not in joined.explain(text).plan
    assert joined.sql(text).fetchall() == [(0,)]


@pytest.mark.parametrize(
    "statement", ["DESCRIBE SELECT * FROM t JOIN o USING (key)", "SUMMARIZE t", "FROM o, t LIMIT 1"]
)
def test_other_statements(joined, statement):
    assert joined.sql(statement).fetchall()


def counted(monkeypatch, module, name):
    """Record the calls of a function, which still runs."""
    calls, real = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: calls.append(given) or real(*given))
    return calls


def test_an_accepted_predicate_is_converted_and_planned_once(large, monkeypatch):
    """The decision passes its tree, and the results of indices and zone maps, to the scan."""
    from lance_engine.scan import plan

    from lance_sql.engines.duckdb import conditions

    converted = counted(monkeypatch, conditions, "from_duckdb")
    planned = counted(monkeypatch, plan, "_pruner")
    with lance_sql.connect() as connection:
        connection.register("t", large)
        text = "SELECT max(note) FROM t WHERE sorted < 20000"
        assert connection.sql(text).fetchall() == [("n9999",)]
        assert len([node for node, _ in converted if node.fragment().count("<") == 1]) == 1
        assert len(planned) == 1
        connection.sql(text).fetchall()
        assert (len(converted), len(planned)) == (1, 1)


def test_predicates_of_one_scan_are_planned_together(large, monkeypatch):
    from lance_engine.scan import plan

    from lance_sql.engines.duckdb import conditions

    converted = counted(monkeypatch, conditions, "from_duckdb")
    searched = counted(monkeypatch, plan, "_search")
    with lance_sql.connect() as connection:
        connection.register("t", large)
        text = "SELECT count(*) FROM t WHERE sorted < 20000 AND (key < 9 OR key > 299990)"
        count = connection.sql(text).fetchall()
        assert count == [(sum(n * 7919 % ROWS < 9 or n * 7919 % ROWS > 299990 for n in range(20000)),)]
        texts = [node.fragment() for node, _ in converted]
        assert len(texts) == len(set(texts)) == 4  # with the two sides of the OR
        sought = [str(filter) for _, filter in searched]
        assert len(sought) == len(set(sought)) <= 3  # each, and both together


def test_what_was_found_of_few_predicates_is_kept(large):
    from lance_sql.engines.duckdb import table

    with lance_sql.connect() as connection:
        connection.register("t", large)
        for number in range(table._CACHED_PLANS + 3):
            assert connection.sql(f"SELECT count(*) FROM t WHERE key = {number}").fetchall() == [(1,)]
        (source,) = connection._session._engine._tables.values()
        found = [offered.condition._plan is not None for offered in source._offered.values()]
        assert found == [False] * 3 + [True] * table._CACHED_PLANS
        assert connection.sql("SELECT count(*) FROM t WHERE key = 0").fetchall() == [(1,)]


def test_lists_of_values_are_predicate_key(large):
    with lance_sql.connect() as connection:
        connection.register("t", large)
        for values in ([1, 2, 3], [1, 2, 4], [3, 2, 1], [1, 2, 3], [300_001, 300_002, 5]):
            listed = ", ".join(map(str, values))
            found = connection.sql(f"SELECT key FROM t WHERE key IN ({listed}) ORDER BY key").fetchall()
            assert found == [(value,) for value in sorted(values) if value < ROWS]


def test_lists_of_values_are_known_again_without_their_text(large, monkeypatch):
    from duckdb._sources import nodes

    from lance_sql.engines.duckdb.table import _predicate_key

    def node(*values):
        return nodes.In(nodes.Col(("key",)), [nodes.Lit(value, "BIGINT") for value in values])

    monkeypatch.setattr(nodes.Node, "fragment", None)
    assert _predicate_key(node(*range(20_000))) == _predicate_key(node(*range(20_000)))
    assert _predicate_key(node(1, 2)) != _predicate_key(node(1, 3))


def test_conditions_are_known_again_without_their_text(monkeypatch):
    import decimal

    from duckdb._sources import nodes

    from lance_sql.engines.duckdb.table import _predicate_key

    def compared(op, value, name="key", kind="BIGINT"):
        return nodes.Binary(op, nodes.Col((name,)), nodes.Lit(value, kind))

    def both(op, *sides):
        return nodes.Binary(op, *sides)

    def made():
        low, high = compared(">=", 1), compared("<", 9)
        return [
            low,
            high,
            compared("=", 1),
            compared("=", 1, "s.key"),
            nodes.Binary("=", nodes.Col(("s", "key")), nodes.Lit(1, "BIGINT")),
            compared("=", "1", "other", "VARCHAR"),
            compared("=", decimal.Decimal("1.5"), "price", "DECIMAL(9,2)"),
            both("AND", low, high),
            both("OR", low, high),
            both("AND", high, low),
            nodes.Postfix("IS NULL", nodes.Col(("key",))),
            nodes.Postfix("IS NOT NULL", nodes.Col(("key",))),
            both("AND", low, nodes.Postfix("IS NULL", nodes.Col(("key",)))),
            nodes.In(nodes.Col(("key",)), [nodes.Lit(1, "BIGINT")]),
        ]

    def by_text():
        low = compared(">=", 1)
        return [
            both("AND", low, both("OR", low, compared("=", 5))),
            both("AND", low, both("OR", low, compared("=", 6))),
            nodes.Unary("NOT", low),
            compared("=", 0.0, "share", "DOUBLE"),
            compared("=", -0.0, "share", "DOUBLE"),
            compared("=", float("nan"), "share", "DOUBLE"),
            both("AND", compared("=", -0.0, "share", "DOUBLE"), low),
        ]

    deep = compared(">=", 1)
    for _ in range(5_000):
        deep = both("AND", deep, deep.right if deep.op == "AND" else deep)
    assert isinstance(_predicate_key(deep), str)
    # Another object for each planning, but the same key.
    keys = [_predicate_key(node) for node in by_text()]
    assert keys == [_predicate_key(node) for node in by_text()]
    with monkeypatch.context() as patched:
        patched.setattr(nodes.Node, "fragment", None)
        keys += [_predicate_key(node) for node in made()]
        assert keys[len(by_text()) :] == [_predicate_key(node) for node in made()]
    assert len(set(keys)) == len(keys)
