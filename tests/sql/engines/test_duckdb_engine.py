"""The DuckDB side: planning facts, pushdown with DuckDB's semantics, types, plain connections."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sql_tables
from counts import examples
from engine_versions import needs_duckdb_2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.pb import table_pb2

import lance_sql


@pytest.fixture(scope="module")
def plain(warehouse):
    """A plain DuckDB connection: m is the dataset with every filter pushed, a the same rows in Arrow."""
    with duckdb.connect() as connection:
        dataset = lance_sql.open(warehouse / "measurements.lance")
        lance_sql.duckdb.register(connection, "m", dataset, pushdown="all")
        connection.register("a", sql_tables.measurements())
        yield connection


def plan(connection, text: str) -> str:
    return connection.sql("EXPLAIN " + text).fetchall()[0][1]


@needs_duckdb_2
def test_the_optimiser_knows_the_row_count(plain):
    assert "~12 rows" in plan(plain, "SELECT id FROM m")


@needs_duckdb_2
def test_a_join_of_three_tables_is_planned_with_their_row_counts(tmp_path):
    connection = duckdb.connect()
    for name, rows in (("customers", 1_500), ("orders", 15_000), ("items", 60_123)):
        dataset = lance_sql.write(
            pa.table({"key": range(rows), name: range(rows)}), tmp_path / f"{name}.lance"
        )
        lance_sql.duckdb.register(connection, name, dataset)
    text = plan(connection, "SELECT count(*) FROM items JOIN orders USING (key) JOIN customers USING (key)")
    counts = {int(rows.replace(",", "")) for rows in re.findall(r"~([\d,]+) rows?", text)}
    assert counts >= {1_500, 15_000, 60_123}


def test_datasets_open_while_duckdb_starts(tmp_path, monkeypatch):
    """Opening a database takes as long as some requests: nothing waits for it before the first statement."""
    lance_sql.write(pa.table({"a": [1, 2]}), str(tmp_path / "t.lance"))
    opened, connect, open_dataset = threading.Event(), duckdb.connect, DatasetVersion.open

    def slow(*arguments, **options):
        assert opened.wait(30)
        return connect(*arguments, **options)

    def noted(*arguments, **options):
        opened.set()
        return open_dataset(*arguments, **options)

    monkeypatch.setattr(duckdb, "connect", slow)
    monkeypatch.setattr(DatasetVersion, "open", noted)
    with lance_sql.connect(str(tmp_path)) as session:
        assert session.sql("SELECT sum(a) FROM t").fetchall() == [(3,)]


def test_columns_are_projected(plain):
    text = plan(plain, "SELECT sum(id) FROM m")
    assert "Projections: id" in text
    assert "label" not in text


def test_pushed_filters_are_gone_from_the_plan(plain):
    text = plan(plain, "SELECT id FROM m WHERE id < 5 AND label IS NOT NULL")
    assert "Filters:" in text
    assert "Expression:" not in text


_COLUMN_VALUES = {
    "id": ["0", "5", "11", "-1", "6"],
    "value": ["0.0", "2", "-1.5", "'NaN'::DOUBLE", "'Infinity'::DOUBLE", "10"],
    "amount": ["0", "2.50", "-3.75", "100", "12345678.90"],
    "label": ["''", "'apple'", "'b'", "'äpfel'", "'o''hara'"],
    "day": ["DATE '2024-02-29'", "DATE '2024-03-05'", "DATE '1900-01-01'"],
    "taken": ["TIMESTAMP '2024-02-28 09:00:00.25'", "TIMESTAMP '2024-02-29'"],
    "small": ["0", "1", "2"],
}


@st.composite
def _comparisons(draw):
    column = draw(st.sampled_from(sorted(_COLUMN_VALUES)))
    value = st.sampled_from(_COLUMN_VALUES[column])
    kind = draw(st.sampled_from(["compare", "compare", "in", "null", "between"]))
    if kind == "in":
        negation = draw(st.sampled_from(["", "NOT "]))
        return f"{column} {negation}IN ({', '.join(draw(st.lists(value, min_size=1, max_size=4)))})"
    if kind == "null":
        return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == "between":
        return f"{column} BETWEEN {draw(value)} AND {draw(value)}"
    return f"{column} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {draw(value)}"


_PREDICATES = st.recursive(
    _comparisons(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)


@needs_duckdb_2
@settings(
    max_examples=examples(37), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(predicate=_PREDICATES)
def test_pushed_filters_select_what_duckdb_selects(plain, predicate):
    expected = plain.sql(f"SELECT id FROM a WHERE {predicate} ORDER BY id").fetchall()
    assert plain.sql(f"SELECT id FROM m WHERE {predicate} ORDER BY id").fetchall() == expected


def test_types_that_duckdb_cannot_read_are_widened(tmp_path):
    table = pa.table(
        {
            "half": pa.array([1.5, None, -2.0], pa.float16()),
            "halves": pa.array([[0.5, 1.5], None, [2.0, 4.0]], pa.list_(pa.float16(), 2)),
            "x": [1, 2, 3],
        }
    )
    dataset = lance_sql.write(table, tmp_path / "t.lance")
    with duckdb.connect() as connection:
        lance_sql.duckdb.register(connection, "t", dataset, pushdown="all")
        assert connection.sql(
            "SELECT sum(half), sum(halves[2]) FROM t WHERE half > -1 OR x > 2"
        ).fetchall() == [(-0.5, 5.5)]
        assert connection.sql("SELECT x FROM t WHERE half IS NULL").fetchall() == [(2,)]


HALF = pa.float16()
WIDE = pa.decimal256(45, 2)
NARROW = pa.decimal256(30, 2)


@pytest.mark.parametrize(
    ("kind", "values", "shown"),
    [
        (HALF, [1.5, None], [1.5, None]),
        (WIDE, [Decimal("1.25"), None], [1.25, None]),
        (NARROW, [Decimal("1.25"), None], [Decimal("1.25"), None]),
        (pa.struct([("a", HALF), ("b", NARROW)]), [{"a": 0.5, "b": Decimal(2)}, None], None),
        (pa.list_(HALF), [[0.5, None], None], None),
        (pa.large_list(WIDE), [[Decimal(3)], []], [[3.0], []]),
        (pa.list_(HALF, 2), [[0.5, 1.5], None], [(0.5, 1.5), None]),
        (pa.list_(pa.struct([("a", HALF)])), [[{"a": 0.5}], None], None),
        (pa.map_(pa.string(), HALF), [{"k": 0.5}, None], None),
    ],
    ids=str,
)
def test_no_type_bars_a_table(tmp_path, kind, values, shown):
    rows = [list(row.items()) if isinstance(row, dict) and pa.types.is_map(kind) else row for row in values]
    table = pa.table({"x": pa.array(rows, kind), "n": [1, 2]})
    lance_sql.write(table, tmp_path / "t.lance", data_storage_version="2.2")
    with lance_sql.connect(tmp_path) as connection:
        found = [row[0] for row in connection.sql("SELECT x FROM t ORDER BY n").fetchall()]
        plain = duckdb.sql("SELECT 1")  # a table without such a column is unaffected
        assert plain.fetchall() == [(1,)]
    expected = values if shown is None else shown
    assert [list(row) if isinstance(row, tuple) else row for row in found] == [
        list(row) if isinstance(row, tuple) else row for row in expected
    ]


@needs_duckdb_2
def test_strings_of_few_values_arrive_as_dictionaries(tmp_path):
    rows = 20_000
    table = pa.table({"few": [f"value {i % 5}" for i in range(rows)], "many": [f"m{i}" for i in range(rows)]})
    dataset = lance_sql.write(table, tmp_path / "t.lance")
    with duckdb.connect() as connection:
        source = lance_sql.duckdb.register(connection, "t", dataset)
        reader = pa.RecordBatchReader._import_from_c_capsule(source.stream(None, [])[0])
        assert reader.schema.types == [pa.dictionary(pa.int32(), pa.string()), pa.string()]
        assert reader.read_all().column("few").to_pylist() == table.column("few").to_pylist()
        text = "SELECT few, count(*) FROM t GROUP BY few ORDER BY few"
        assert connection.sql(text).fetchall() == [(f"value {i}", rows // 5) for i in range(5)]


WITHOUT_HOOK = """
import builtins, sys

original = builtins.__import__

def without_sources(name, globals=None, *arguments, **options):
    if name == "duckdb._sources" and (globals or {}).get("__name__", "").startswith("lance_sql"):
        raise ImportError(name)
    return original(name, globals, *arguments, **options)

builtins.__import__ = without_sources
import lance_sql

with lance_sql.connect(sys.argv[1]) as connection:
    connection.execute("SET enable_progress_bar = false")
    print(connection.sql("SELECT count(*), sum(id) FROM measurements WHERE id > 2").fetchall())
    print("~12 rows" in connection.explain("SELECT id FROM measurements").plan)
    print(connection.sql("SELECT _rowid, label FROM measurements WHERE label = 'cherry'").fetchall())
    connection.register("half", lance_sql.open(sys.argv[2]))
    print(connection.sql("SELECT x FROM half WHERE x > 1").fetchall())
"""


def test_without_the_source_protocol_a_table_is_a_plain_dataset(warehouse, tmp_path):
    half = lance_sql.write(pa.table({"x": pa.array([0.5, 1.5, None], pa.float16())}), tmp_path / "h.lance")
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_HOOK, str(warehouse), half.uri],
        capture_output=True,
        text=True,
        timeout=200,
    )
    expected = ["[(9, 63)]", "False", "[(4, 'cherry')]", "[(1.5,)]"]
    assert found.stdout.splitlines() == expected, found.stderr


def test_install_for_plain_connections(warehouse):
    path = f"{warehouse}/orders.lance"
    text = f"SELECT count(*) FROM lance_scan('{path}') JOIN '{path}' AS o USING (order_id)"
    with duckdb.connect() as connection:
        lance_sql.duckdb.install(connection)
        assert connection.sql(text).fetchall() == [(6,)]


def test_a_dataset_without_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.lance"
    lance_sql.write(pa.table({"a": [1]}), path)
    (manifest,) = (path / "_versions").glob("*.manifest")
    content = manifest.read_bytes()
    start = int.from_bytes(content[-16:-8], "little")
    end = start + 4 + int.from_bytes(content[start : start + 4], "little")
    message = table_pb2.Manifest.FromString(content[start + 4 : end])
    del message.fields[:]
    changed = message.SerializeToString()
    manifest.write_bytes(content[:start] + len(changed).to_bytes(4, "little") + changed + content[end:])
    with pytest.raises(UnsupportedFeatureError, match="no columns"):
        lance_sql.sql(f"SELECT count(*) FROM '{path}'").fetchall()
