"""Conditions that scans find in the text of a statement drop no row that the engine keeps."""

from __future__ import annotations

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_sql
from lance_sql.engines import pushdown

ROWS = 900
TEXTS = [
    *("", "a", "ab", "%", "_", "a_b", "a%b", "abc", "cab", "ba", "aaa", "A", "b", "a\nb", "\\", "a\\b"),
    *("\\%", "!", "a!b", "é", "éa", "e\u0301", "日本語", "😀", "a😀b"),
]
PATTERN = st.text(st.sampled_from(list("ab%_\\!é日😀A\n")), max_size=5)


@pytest.fixture(autouse=True)
def every_condition_is_tested(monkeypatch):
    """Scans test every condition that they understand, however many rows pass."""
    monkeypatch.setattr(pushdown, "_SMALL_BYTES", 0)
    for share in ("_SELECTIVE_SHARE", "_LEFT_SHARE"):
        monkeypatch.setattr(pushdown, share, 2)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Dictionary-coded and plain strings with nulls, three fragments, and deleted rows."""
    made = np.random.default_rng(3)

    def some(values):
        return pa.array(
            [None if made.random() < 0.1 else values[made.integers(len(values))] for _ in range(ROWS)]
        )

    long_texts = [f"{text}{number}{text}" for number in range(400) for text in TEXTS]
    table = pa.table(
        {
            "n": pa.array(range(ROWS)),
            "few": some(TEXTS),
            "many": some(long_texts),
            "large": some(TEXTS).cast(pa.large_string()),
            "i": some([-3, 0, 5, 7]),
        }
    )
    found = tmp_path_factory.mktemp("likes") / "t.lance"
    lance_sql.write(table, found, max_rows_per_file=300)
    lance_sql.open(found).delete("n % 7 = 3")
    return found


@pytest.fixture(scope="module")
def plain(path):
    return lance_sql.open(path).scan().to_table()


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


KINDS = ["LIKE", "ESCAPE", "contains", "starts_with", "prefix", "ends_with", "suffix"]
COLUMN = st.sampled_from(["few", "many", "large"])
NOT = st.sampled_from(["", "NOT "])


@st.composite
def like(draw, engine):
    column, negated, pattern = draw(COLUMN), draw(NOT), draw(PATTERN)
    if engine == "datafusion":
        return f"{column} {negated}LIKE {quoted(pattern)}"
    kind = draw(st.sampled_from(KINDS))
    if kind == "LIKE":
        return f"{column} {negated}LIKE {quoted(pattern)}"
    if kind == "ESCAPE":
        escape = draw(st.sampled_from(["!", "\\", "%", ""]))
        return f"{column} {negated}LIKE {quoted(pattern.rstrip('!%') + 'a')} ESCAPE {quoted(escape)}"
    return f"{negated}{kind}({column}, {quoted(pattern)})"


@st.composite
def comparison(draw, engine):
    number = draw(st.integers(-4, 8))
    return draw(
        st.one_of(
            like(engine),
            st.sampled_from(
                [
                    f"i = {number}",
                    f"i <> {number}",
                    f"i BETWEEN {number} AND 6",
                    f"i IN ({number}, 5)",
                    "i IS NULL",
                    "few IS NOT NULL",
                    "few = 'ab'",
                    "many NOT IN ('a', 'b')",
                    f"t.n < {100 * number}",
                ]
            ),
        )
    )


@st.composite
def condition(draw, engine, depth=2):
    if depth == 0 or draw(st.booleans()):
        return draw(comparison(engine))
    parts = draw(st.lists(condition(engine, depth - 1), min_size=2, max_size=3))
    joined = f" {draw(st.sampled_from(['AND', 'OR']))} ".join(f"({p})" if " " in p else p for p in parts)
    return f"{draw(NOT)}({joined})" if draw(st.booleans()) else joined


SHAPES = [
    "SELECT n FROM t WHERE {}",
    "SELECT count(*) AS n FROM t WHERE {}",
    "SELECT max(n) AS n FROM t WHERE {} GROUP BY few",
    "SELECT n FROM (SELECT * FROM t WHERE {}) AS s WHERE n > 50",
    "SELECT n FROM t WHERE {} ORDER BY i, n LIMIT 7",
    "SELECT t.n FROM t, u WHERE u.k = t.i AND ({})",
    "SELECT t.n FROM u JOIN t ON u.k = t.i WHERE {}",
    "SELECT u.k AS n FROM u LEFT JOIN t ON u.k = t.i WHERE {}",
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_statements_return_what_they_return_over_arrow(path, plain, engine, data):
    text = data.draw(st.sampled_from(SHAPES)).format(data.draw(condition(engine)))
    other = pa.table({"k": [5, 5, 7, -3, None, 100]})
    with lance_sql.connect(path.parent, engine=engine) as connection:
        connection.register("u", other)
        try:
            expected = over_arrow(engine, text, {"t": plain, "u": other})
        except Exception:  # a pattern that the engine refuses
            return
        found = connection.sql(text).arrow()["n"].to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def over_arrow(engine, text, tables):
    if engine == "duckdb":
        with duckdb.connect() as connection:
            for name, table in tables.items():
                connection.register(name, table)
            return connection.sql(text).to_arrow_table()["n"].to_pylist()
    context = datafusion.SessionContext()
    for name, table in tables.items():
        context.register_record_batches(
            name, [table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]]
        )
    return context.sql(text).to_arrow_table()["n"].to_pylist()
