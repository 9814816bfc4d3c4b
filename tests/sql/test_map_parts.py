"""Of maps, scans give DuckDB the parts that a statement uses: what statements read, and that they answer as
those do that get whole maps.
"""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine.map_parts import parts_of, parts_type
from lance_engine.scan.paths import with_fields
from used_parts import read_by, with_all, write_in_halves

import lance_sql
from lance_sql.engines import pushdown
from lance_sql.engines.duckdb.table import source
from lance_sql.engines.parts import Parts
from lance_sql.session import struct_parts
from lance_sql.text.map_parts import map_part
from lance_sql.text.tokens import tokenize

KIND = pa.map_(pa.string(), pa.string())
KEYS = ["plan", "Plan", "other", "", "it's", "map_keys()"]
maps = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(st.none(), st.text(max_size=5)), max_size=5),
)


def as_column(found, kind=KIND):
    return pa.array([None if entries is None else list(entries.items()) for entries in found], kind)


def fill(place, found) -> None:
    inner = [
        None if entries is None else {key: {"x": value} for key, value in entries.items()}
        for entries in found
    ]
    table = pa.table(
        {
            "id": pa.array(range(len(found))),
            "m": as_column(found),
            "deep": as_column(inner, pa.map_(pa.string(), pa.struct([("x", pa.string())]))),
            "n": as_column([{1: 2}] * len(found), pa.map_(pa.int32(), pa.int32())),
        }
    )
    write_in_halves(place, table, "m", "MAP(VARCHAR, VARCHAR)", data_storage_version="2.2")


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("maps")
    number = random.Random(4)
    found: list[dict[str, str | None] | None] = [None, {}]
    for _ in range(120):
        keys = [key for key in KEYS if number.random() < 0.5]
        found.append(
            {key: number.choice(["a", "b", "ä", None]) for key in keys} if number.random() < 0.9 else None
        )
    fill(place, found)
    return place


#: Statements, and the parts of maps that they read.
STATEMENTS = {
    "SELECT m['plan'], count(*) FROM t GROUP BY ALL ORDER BY ALL": ["m.plan"],
    "SELECT t.m['plan'] AS plan, m['Other'] FROM t ORDER BY id": ["m.Other", "m.plan"],
    "SELECT id FROM t WHERE m['plan'] = 'a' ORDER BY id": ["m.plan"],
    "SELECT id FROM t WHERE m['plan'] IS NULL AND m['it''s'] IS NOT NULL ORDER BY id": ["m.it's", "m.plan"],
    "SELECT id, upper(\"m\"['plan']), \"M\"['other'] FROM t x ORDER BY id": ["m.other", "m.plan"],
    "SELECT later['plan'], later['other'] FROM t ORDER BY id": ["later.other", "later.plan"],
    "SELECT deep['plan'].x, deep['plan']['x'] FROM t ORDER BY id": ["deep.plan"],
    "SELECT m['plan'][1], substr(m['plan'], 1, 2) FROM t ORDER BY id": ["m.plan"],
    "SELECT id, map_keys(m), cardinality(m), map_values(t.m) FROM t ORDER BY id": [
        "m.cardinality()",
        "m.map_keys()",
        "m.map_values()",
    ],
    "SELECT k, count(*) FROM (SELECT unnest(map_keys(m)) AS k FROM t) GROUP BY k ORDER BY k": [
        "m.map_keys()"
    ],
    "SELECT cardinality(\"m\"), max(MAP_KEYS(M)[1]) FROM t WHERE m['plan'] > 'a' GROUP BY ALL ORDER BY ALL": [
        "m.cardinality()",
        "m.map_keys()",
        "m.plan",
    ],
    "SELECT count(*), min(x.m['plan']) FROM t x JOIN t y ON x.m['plan'] = y.later['plan']": [
        "later.plan",
        "m.plan",
    ],
    "SELECT map_values(deep)[1].x FROM t ORDER BY id": ["deep.map_values()"],
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_only_used_parts_are_given(place, text, monkeypatch):
    found, plain, read = with_all(place, monkeypatch, text)
    assert found == plain
    assert found[0]
    assert read == STATEMENTS[text]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT m, m['plan'] FROM t ORDER BY id",
        "SELECT * FROM t WHERE m['plan'] = 'a' ORDER BY id",
        "SELECT m['plan'], m['Plan'] FROM t ORDER BY id",
        "SELECT m[''] FROM t ORDER BY id",
        "SELECT m['map_keys()'] FROM t ORDER BY id",
        "SELECT m['plan' || ''] FROM t ORDER BY id",
        "SELECT m[m['plan']] FROM t ORDER BY id",
        "SELECT n[1], m FROM t ORDER BY id",
        "SELECT n['1'], n['7'], m FROM t ORDER BY id",
        "SELECT map_keys(m) FROM t WHERE m IS NOT NULL ORDER BY id",
        "SELECT map_keys(x.m), y.m['plan'] FROM t x JOIN t y ON x.id = y.id ORDER BY x.id",
        "SELECT map_keys(y.m), t.m['plan'] FROM t, (SELECT MAP {'a': 1} AS m) AS y WHERE t.id = 5",
        "SELECT map_keys(m) FROM t WHERE id < 9 UNION ALL BY NAME SELECT ['x'] AS \"map_keys(m)\" ORDER BY 1",
        "SELECT map_contains(m, 'plan') FROM t ORDER BY id",
        "SELECT map_entries(m) FROM t ORDER BY id",
        "SELECT element_at(m, 'plan') FROM t ORDER BY id",
        'SELECT "map_keys(m)" FROM (SELECT map_keys(m) FROM t ORDER BY id)',
    ],
)
def test_whole_maps_where_more_may_be_used(place, text, monkeypatch):
    found, plain, read = with_all(place, monkeypatch, text)
    assert found == plain
    assert "m" in read


def test_scans_do_not_test_conditions_on_parts(place, monkeypatch):
    monkeypatch.setattr(pushdown, "_SMALL_BYTES", 0)
    dataset = lance_sql.open(place / "t.lance")
    part = with_fields(dataset.snapshot.schema.field("m"), [("plan",)])
    assert part is not None
    connection = duckdb.connect()
    scanned = source(dataset, "parts", parts=Parts("t", (part,)), pushdown="all")
    connection.register("parts", scanned)
    found = connection.execute("SELECT id FROM parts WHERE m.plan = 'b' AND id > 7 ORDER BY id").fetchall()
    with lance_sql.connect(place) as session:
        text = "SELECT id FROM t WHERE m['plan'] = 'b' AND id > 7 ORDER BY id"
        assert found == read_by(session, text)[0][0]
    assert found


def test_maps_of_other_tables_stay_maps(place, monkeypatch):
    with lance_sql.connect(place) as session:
        session.register("other", pa.table({"m": as_column([{"a": "b"}]), "k": [1]}))
        text = "SELECT map_keys(other.m), t.m['plan'] FROM other JOIN t ON t.id = k + 4"
        found, _ = read_by(session, text)
        monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 1 << 60)
        assert found == read_by(session, text)[0]
        assert found[0][0][0] == ["a"]


def test_functions_of_users_get_whole_maps(place):
    with lance_sql.connect(place) as session:
        session.sql("CREATE MACRO map_keys(x) AS x['plan']")
        found, read = read_by(session, "SELECT map_keys(m) FROM t ORDER BY id")
        assert found[0] == session.sql("SELECT m['plan'] FROM t ORDER BY id").fetchall()
        assert read == ["m"]
        assert read_by(session, "SELECT map_keys(m) IS NULL, m['plan'] FROM t ORDER BY id")[1] == ["m"]
    with lance_sql.connect(place) as session:
        session.sql("SET default_collation = 'nocase'")
        assert read_by(session, "SELECT m['plan'] FROM t ORDER BY id")[1] == ["m"]


def test_results_can_be_streamed_with_their_names(place):
    with lance_sql.connect(place) as session:
        result = session.sql("SELECT map_keys(m), cardinality(m) FROM t ORDER BY id")
        assert list(result.columns) == ["map_keys(m)", "cardinality(m)"]
        reader = result.reader()
        assert reader.schema.names == ["map_keys(m)", "cardinality(m)"]
        streamed = reader.read_all()
        assert streamed.column_names == ["map_keys(m)", "cardinality(m)"]
        assert streamed.num_rows == session.sql("SELECT count(*) FROM t").fetchall()[0][0]


@given(
    st.lists(maps, min_size=2, max_size=12), st.sets(st.sampled_from(["plan", "other", "it's"]), min_size=1)
)
@settings(max_examples=30, deadline=None)
def test_any_maps(tmp_path_factory, found, keys):
    place = tmp_path_factory.mktemp("any")
    fill(place, found)
    values = ", ".join("m['{0}'], later['{0}'], deep['{0}']".format(key.replace("'", "''")) for key in keys)
    functions = "map_keys(m), map_values(later), cardinality(m), cardinality(later)"
    text = f"SELECT id, {values}, {functions} FROM t ORDER BY id"
    with pytest.MonkeyPatch.context() as patch, lance_sql.connect(place) as session:
        patch.setattr(struct_parts, "_LEAST_BYTES", 0)
        parts, read = read_by(session, text)
        assert "m" not in read
        patch.setattr(struct_parts, "_LEAST_BYTES", 1 << 60)
        assert parts == read_by(session, text)[0]


@given(st.lists(maps, max_size=12), st.integers(0, 5), st.integers(0, 12))
def test_parts_are_those_of_the_maps(found, first, count):
    names = ["plan", "map_keys()", "", "cardinality()", "map_values()"]
    column = as_column(found).slice(first, count)
    parts = parts_of(column, names)
    assert parts.type == parts_type(KIND, names)
    assert parts.to_pylist() == [
        None
        if entries is None
        else {
            "plan": entries.get("plan"),
            "map_keys()": list(entries),
            "": entries.get(""),
            "cardinality()": len(entries),
            "map_values()": list(entries.values()),
        }
        for entries in found[first : first + count]
    ]


def test_entries_below_nulls_are_no_part():
    keys, values = pa.array(["a", "b", "a"]), pa.array(["1", "2", "3"])
    whole = pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), keys, values)
    bits = pa.py_buffer(bytes([0b10]))
    column = pa.Array.from_buffers(
        whole.type,
        2,
        [bits, whole.buffers()[1]],
        children=[
            pa.StructArray.from_arrays(
                [keys, values], fields=list(pa.struct([whole.type.key_field, whole.type.item_field]))
            )
        ],
    )
    assert column.to_pylist() == [None, [("b", "2"), ("a", "3")]]
    parts = parts_of(column, ["a", "map_keys()", "cardinality()"])
    assert parts.to_pylist() == [None, {"a": "3", "map_keys()": ["b", "a"], "cardinality()": 2}]
    assert [parts.field(place).to_pylist() for place in range(3)] == [
        [None, "3"],
        [None, ["b", "a"]],
        [None, 2],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "m",
        "m['a' || 'b']",
        "m[1]",
        "m[?]",
        "m[E'a']",
        "m['map_keys()']",
        "m.a",
        "my.map_keys(m)",
        "map_keys(m, 1)",
        "keys(m)",
        "(m)",
    ],
)
def test_what_is_not_understood_uses_the_map(text):
    tokens = tokenize(f"SELECT ({text}) FROM t")
    (place,) = [number for number, token in enumerate(tokens) if token.value == "m"]
    assert map_part(tokens, place, functions=True) == ()


def test_duckdb_compares_with_the_same_maps(place):
    """The plain query is that of DuckDB itself."""
    table = lance_sql.open(place / "t.lance").scan().to_table()
    oracle = duckdb.connect()
    oracle.register("t", table)
    with lance_sql.connect(place) as session:
        for text in STATEMENTS:
            assert session.sql(text).fetchall() == oracle.execute(text).fetchall(), text
