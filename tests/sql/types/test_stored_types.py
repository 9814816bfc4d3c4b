"""Datasets store every type of DuckDB: statements give the same types and rows as plain tables of DuckDB."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest
from counts import spread
from duckdb_types import TYPES
from engine_versions import needs_duckdb_2
from lance_engine.errors import InvalidFilterError, LanceError, UnsupportedFeatureError
from test_duckdb_values import VALUES

import lance_sql

pytestmark = needs_duckdb_2

QUERIES = (
    "SELECT * FROM t ORDER BY i",
    "SELECT v::VARCHAR, typeof(v), typeof(w), typeof(x) FROM t ORDER BY i",
    "SELECT * FROM u ORDER BY i",
    "SELECT i FROM t ORDER BY v DESC, i LIMIT 5",
    "SELECT min(v), max(v), count(v), count(DISTINCT v) FROM t",
    "SELECT v, count(*) FROM t GROUP BY v ORDER BY 2, v::VARCHAR",
    "SELECT a.i, b.i FROM t a JOIN u b ON a.v = b.v ORDER BY 1, 2",
    "SELECT i FROM t WHERE v IN (SELECT v FROM u WHERE i = 0) OR v IS NULL ORDER BY i",
    "SELECT [v], {'k': v}, MAP {1: v} FROM t ORDER BY i",
)
CONDITIONS = ("v = {}::{}", "v < {}::{}", "v >= {}", "v IN ({}, {first})", "v <> {}::{} AND i < 100")


def _rows(session: object, text: str) -> object:
    """The rows of a statement, or that it fails."""
    try:
        return session.sql(text).fetchall()  # type: ignore[attr-defined]
    except (LanceError, duckdb.Error):
        return "fails"


def _statements(kind: str, values: list[str]) -> Iterator[tuple[str, bool]]:
    """Statements, and whether their result is compared."""
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate([*values, "NULL"]))
    yield f"CREATE TABLE t (i INTEGER, v {kind})", False
    yield f"INSERT INTO t VALUES {rows}", False
    yield "CREATE TABLE u AS SELECT * FROM t", False
    yield "INSERT INTO t SELECT i + 100, v FROM t", False
    yield f"ALTER TABLE t ADD COLUMN w {kind}", False
    yield f"ALTER TABLE t ADD COLUMN x {kind}", False
    yield f"UPDATE t SET w = v, x = {values[1]} WHERE i % 2 = 0", False
    for query in QUERIES:
        yield query, True
    for value in values[:3]:
        for condition in CONDITIONS:
            yield f"SELECT i FROM t WHERE {condition.format(value, kind, first=values[0])} ORDER BY i", True
    for change in (
        f"UPDATE t SET i = i + 1000 WHERE v < {values[1]}",
        "MERGE INTO t USING u ON t.i = u.i WHEN MATCHED THEN UPDATE SET w = u.v "
        "WHEN NOT MATCHED THEN INSERT (i, v) VALUES (u.i, u.v)",
        f"DELETE FROM t WHERE v = {values[0]}::{kind}",
        f"UPDATE t SET v = {values[0]} WHERE v IS NULL",
    ):
        yield change, False
        yield "SELECT * FROM t ORDER BY i, v::VARCHAR", True


#: Types that are stored in ways of their own.
_QUICK = ("HUGEINT", "UUID", "ENUM", "UNION(n INTEGER, tag", "INTERVAL", "VARCHAR[3]", "STRUCT")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "kind",
    [kind if kind.startswith(_QUICK) else pytest.param(kind, marks=pytest.mark.slow) for kind in TYPES],
)
def test_statements_are_those_of_plain_tables(tmp_path, kind):
    with lance_sql.connect(tmp_path, engine="duckdb") as ours, duckdb.connect() as theirs:
        for session in (ours, theirs):
            session.sql("SET TimeZone = 'UTC'")
        for text, is_compared in _statements(kind, TYPES[kind]):
            rows, expected = _rows(ours, text), _rows(theirs, text)
            assert (rows == "fails") == (expected == "fails"), text
            assert not is_compared or rows == expected, text
    found = lance.dataset(tmp_path / "t.lance")
    assert found.to_table().num_rows == found.count_rows()


def _nested(value: str) -> list[str]:
    return [
        value, f"[{value}, NULL]", f"{{'a': {value}, 'b': NULL}}", f"MAP {{'k': {value}}}",
        f"[{{'a': [{value}, NULL]}}, NULL]", f"union_value(m := {value})", f"row({value}, 1)",
    ]  # fmt: skip


def test_nested_values_are_read_as_they_were_written(tmp_path):
    left_out = ("MAP {}", "'{\"a\":  1}'::JSON")  # see below, and JSON is stored without its spaces
    values = [text for value in VALUES if value not in left_out for text in _nested(value)]
    values = spread(values, 100)
    chosen = [f"CASE WHEN i % 3 < 2 THEN {text} END AS c{number}" for number, text in enumerate(values)]
    for start in range(0, len(values), 60):
        query = f"SELECT {', '.join(chosen[start : start + 60])} FROM range(4) r(i)"
        with lance_sql.connect(tmp_path, engine="duckdb") as ours, duckdb.connect() as theirs:
            expected = theirs.sql(query)
            ours.sql(f"CREATE OR REPLACE TABLE t AS {query}").arrow()
            assert repr(ours.sql("FROM t").fetchall()) == repr(expected.fetchall())
            ours.sql("INSERT INTO t SELECT * FROM t").arrow()
            assert repr(ours.sql("FROM t LIMIT 4").fetchall()) == repr(expected.fetchall())
            described = ours.sql("DESCRIBE t").fetchall()
            assert [kind for _, kind, *_ in described] == [str(kind) for kind in expected.types]


@pytest.mark.sampled(1)
def test_values_that_are_not_of_the_type_are_refused(tmp_path, engine):
    with lance_sql.connect(tmp_path, engine=engine) as session:
        for number, (kind, value) in enumerate(
            {
                "UUID": "'hello'", "ENUM('a')": "'b'", "BIT": "'12'", "HUGEINT": "'x'", "INTERVAL": "'x'",
                "TIMETZ": "'x'", "VARCHAR[2]": "['a']", "BIGNUM": "'x'", "TUPLE(INTEGER)": "row('x')",
            }.items()
        ):  # fmt: skip
            session.sql(f"CREATE TABLE t{number} (v {kind})").arrow()
            for statement in (f"INSERT INTO t{number} VALUES ({value})", f"UPDATE t{number} SET v = {value}"):
                session.sql(f"INSERT INTO t{number} VALUES (NULL)").arrow()
                with pytest.raises(LanceError):
                    session.sql(statement).arrow()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", [kind for kind in TYPES if "[" not in kind and "(" not in kind])
def test_statements_on_datafusion_write_the_same(tmp_path, kind):
    values = [value for value in TYPES[kind] if value.startswith(("'", "1", "-"))]
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        session.sql(f"CREATE TABLE t (i INTEGER, v {kind})").arrow()
        rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
        session.sql(f"INSERT INTO t VALUES {rows}").arrow()
        session.sql(f"UPDATE t SET v = {values[0]} WHERE i = 1").arrow()
        session.sql("DELETE FROM t WHERE i = 2").arrow()
        assert len(session.sql("SELECT * FROM t").arrow()) == len(values) - (len(values) > 2)
    with lance_sql.connect(tmp_path, engine="duckdb") as ours, duckdb.connect() as theirs:
        theirs.sql(f"CREATE TABLE t (i INTEGER, v {kind})")
        theirs.sql(f"INSERT INTO t VALUES {rows}")
        theirs.sql(f"UPDATE t SET v = {values[0]} WHERE i = 1")
        theirs.sql("DELETE FROM t WHERE i = 2")
        query = "SELECT i, v::VARCHAR, typeof(v) FROM t ORDER BY i"
        assert ours.sql(query).fetchall() == theirs.sql(query).fetchall()


def test_types_of_create_type(tmp_path):
    with lance_sql.connect(tmp_path, engine="duckdb") as session:
        session.sql("CREATE TYPE mood AS ENUM ('happy', 'angry')").arrow()
        session.sql("CREATE TYPE place AS STRUCT(name VARCHAR, mood mood)").arrow()
        session.sql("CREATE TABLE t (m mood, p place)").arrow()
        session.sql("INSERT INTO t VALUES ('angry', {'name': 'a', 'mood': 'happy'})").arrow()
        session.sql("ALTER TABLE t ADD COLUMN n mood DEFAULT 'happy'").arrow()
        assert session.sql("FROM t").fetchall() == [("angry", {"name": "a", "mood": "happy"}, "happy")]
        with pytest.raises(LanceError, match="sad"):
            session.sql("INSERT INTO t (m) VALUES ('sad')").arrow()
        with pytest.raises(LanceError, match="nobody"):
            session.sql("CREATE TABLE n (m nobody)").arrow()
    with lance_sql.connect(tmp_path, engine="duckdb") as session:  # without the types
        assert session.sql("SELECT typeof(m) FROM t").fetchall() == [("ENUM('happy', 'angry')",)]


def test_types_changed_by_alter_table(tmp_path):
    texts = {
        "UUID": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "BIT": "101",
        "INTERVAL": "1 day",
        "HUGEINT": "7",
    }
    with lance_sql.connect(tmp_path, engine="duckdb") as session:
        for kind, text in texts.items():
            session.sql(f"CREATE OR REPLACE TABLE t AS SELECT '{text}' AS v").arrow()
            session.sql(f"ALTER TABLE t ALTER v TYPE {kind}").arrow()
            assert session.sql("SELECT typeof(v) FROM t").fetchall() == [(kind,)]
            session.sql("ALTER TABLE t ALTER v TYPE VARCHAR").arrow()
            assert session.sql("SELECT typeof(v), lower(v) FROM t").fetchall() == [("VARCHAR", text.lower())]
            session.sql("CREATE OR REPLACE TABLE t AS SELECT 'x' AS v").arrow()
            with pytest.raises(LanceError):
                session.sql(f"ALTER TABLE t ALTER v TYPE {kind}").arrow()


def test_filters_compare_uuids_and_no_opaque_values(tmp_path):
    with lance_sql.connect(tmp_path, engine="duckdb") as session:
        session.sql(
            "CREATE TABLE t AS SELECT format('{:032x}', i)::UUID AS u, i::HUGEINT AS h, "
            "to_days(i::INTEGER) AS d, {'b': i::BIT} AS s, CASE WHEN i > 5 THEN i::BIGNUM END AS n, "
            "'POINT(1 2)'::GEOMETRY AS g FROM range(10) r(i)"
        ).arrow()
    dataset = lance_sql.open(tmp_path / "t.lance")
    assert dataset.count_rows("u = '0000000000000000000000000000000A'") == 0
    assert dataset.count_rows("u = '00000000-0000-0000-0000-000000000007'") == 1
    assert dataset.count_rows("u < '00000000000000000000000000000007'") == 7
    assert dataset.count_rows("n IS NULL AND h IS NOT NULL") == 6
    refused = [
        "u = 'hello'",
        "h = 3",
        "h < '3'",
        "d = '1 day'",
        "s.b = '1'",
        "n IN ('7')",
        "h = h",
        "g = 'x'",
    ]
    for condition in refused:
        with pytest.raises(InvalidFilterError):
            dataset.count_rows(condition)


def _received(path, storage: pa.Array, name: str, extension: str = "arrow.opaque") -> None:
    parameters = json.dumps({"type_name": name, "vendor_name": "DuckDB"})
    metadata = {"ARROW:extension:name": extension, "ARROW:extension:metadata": parameters}
    # without the checks of extension types that writing a table of pyarrow would make
    lance_sql.write(
        pa.table([storage], schema=pa.schema([pa.field("v", storage.type, metadata=metadata)])), path
    )


@pytest.mark.parametrize(
    ("storage", "name", "kind"),
    [
        (pa.array([b"", b"\xff"]), "bit", "BLOB"),
        (pa.array([b"\xff" * 8], pa.binary(8)), "time_tz", "BLOB"),
        (pa.array([b"\xff" * 7], pa.binary(7)), "hugeint", "BLOB"),
        (pa.array([b"\xff" * 16], pa.binary(16)), "bit", "BLOB"),
        (pa.array([""]), "bignum", "BIGNUM"),
        (pa.array(["x"]), "interval", "INTERVAL"),
        (pa.array(["x"]), "ENUM('a'); DROP TABLE t; --')", "VARCHAR"),
        (pa.array(["x"]), "ENUM('a', 'a')", "?"),
        (pa.array(["x"]), "ENUM('a')", "ENUM('a')"),
        (pa.array([["a"]]), "array(2)", "VARCHAR[2]"),
        (pa.array([["a"]]), "array(2] AS x --)", "VARCHAR[]"),
        (pa.array([{"tag": "x", "n": 1}]), "union", "UNION(n BIGINT)"),
        (pa.array([1]), "tuple", "BIGINT"),
        (pa.array(["x"]), "[" * 1000, "VARCHAR"),
    ],
)  # fmt: skip
def test_received_tables_cannot_damage_a_session(tmp_path, storage, name, kind):
    """DuckDB itself trusts the name of an extension type, and ends all sessions of a database on errors."""
    _received(tmp_path / "t.lance", storage, name)
    with lance_sql.connect(tmp_path, engine="duckdb") as session:
        for query in ("SELECT typeof(v) FROM t LIMIT 1", "SELECT v, v::VARCHAR, v = v, v < v FROM t"):
            try:
                rows = session.sql(query).fetchall()
            except LanceError:
                continue
            assert "typeof" not in query or rows == [(kind,)]
        assert session.sql("SELECT 1").fetchall() == [(1,)]


def test_what_cannot_be_stored(tmp_path):
    with lance_sql.connect(tmp_path, engine="duckdb") as session:
        with pytest.raises(UnsupportedFeatureError, match='MAP\\("NULL", "NULL"\\)'):
            session.sql("CREATE TABLE t AS SELECT MAP {} AS m").arrow()
        with pytest.raises(LanceError, match="COLLATE"):
            session.sql("CREATE TABLE t (v VARCHAR COLLATE NOCASE)").arrow()
        with pytest.raises(LanceError, match="INTERVAL"):  # Parquet's variants have none
            session.sql("CREATE TABLE t AS SELECT (INTERVAL 1 DAY)::VARIANT AS v").arrow()


def test_results_of_other_libraries(tmp_path):
    with lance_sql.connect(tmp_path, engine="duckdb") as session:
        session.sql(
            "CREATE TABLE t AS SELECT 7::HUGEINT AS h, '101'::BIT AS b, INTERVAL 1 MONTH AS i, "
            "'x'::ENUM('x') AS e, row(1) AS r, '12:00:00+01'::TIMETZ AS t"
        ).arrow()
        arrow_table = lance_sql.open(tmp_path / "t.lance").to_table()
        rows = session.sql("FROM t").fetchall()
        session.register("other", arrow_table)  # with extension types
        assert session.sql("FROM other").fetchall() == rows
        assert rows[0][:5] == (7, "101", datetime.timedelta(days=30), "x", (1,))
        session.sql("INSERT INTO t FROM other").arrow()
        assert session.sql("FROM t").fetchall() == rows * 2


@pytest.mark.parametrize(
    ("kind", "one"),
    [("JSON", """'"text"'::JSON"""), ("UUID", f"'{'5' * 32}'::UUID"), ("TIMETZ", "'12:00:00+05'::TIMETZ")],
)
@pytest.mark.parametrize("form", ["MAP({0}, INT)", "MAP({0}, {0}[])", "MAP(INT, MAP({0}, INT))[]"])
def test_maps_have_keys_of_every_type(tmp_path: Path, kind: str, one: str, form: str) -> None:
    """Arrow makes a map of keys of an extension type only if they have exactly the type of the map."""
    column = form.format(kind)
    item = f"[{one}]" if "[]" in form else "7"
    key = f"MAP {{{one}: {item}}}"
    value = f"[MAP {{1: MAP {{{one}: 7}}, 2: NULL}}, NULL]" if form.endswith("[]") else key
    texts = [
        f"CREATE TABLE t (id INT, m {column})",
        f"INSERT INTO t VALUES (1, {value}), (2, NULL), (3, CAST({value} AS {column}))",
        "INSERT INTO t SELECT id + 3, m FROM t WHERE id > 1",
        f"UPDATE t SET m = {value} WHERE id = 2",
        "MERGE INTO t USING (SELECT id + 4 AS k, m FROM t) s ON k = id WHEN MATCHED THEN UPDATE SET m = s.m "
        "WHEN NOT MATCHED THEN INSERT VALUES (k, s.m)",
    ]
    with lance_sql.connect(tmp_path) as ours, duckdb.connect() as plain:
        for text in texts:
            ours.execute(text)
            plain.execute(text)
        query = "SELECT id, m::VARCHAR, typeof(m) FROM t ORDER BY ALL"
        assert ours.execute(query).fetchall() == plain.execute(query).fetchall()
