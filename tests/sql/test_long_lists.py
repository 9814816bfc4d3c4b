"""Lists of thousands of constants after IN: their statements mean the same, and engines parse less."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from engine_versions import needs_duckdb_2
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_sql
from lance_sql.session.connection import Connection
from lance_sql.text.long_lists import integers, long_lists, strings
from lance_sql.text.statement import Statement

ROWS = 120_000
MANY = [f"{number}" for number in range(-3_000, 3_000)]
TEXTS = [f"'it''s {number}'" for number in range(0, 90_000, 30)]


def _data(rows: int) -> pa.Table:
    numbers = np.random.default_rng(8)
    ids = np.arange(rows) - rows // 2

    def some(values: pa.Array) -> pa.Array:
        return pa.array(values.to_pylist(), values.type, mask=numbers.random(rows) < 0.1)

    return pa.table(
        {
            "id": ids,
            "tiny": some(pa.array(numbers.integers(-128, 128, rows), pa.int8())),
            "small": some(pa.array(numbers.integers(-(1 << 15), 1 << 15, rows), pa.int16())),
            "number": some(pa.array(ids // 3, pa.int32())),
            "text": some(pa.array([f"it's {row}" for row in range(rows)])),
            "large": some(pa.array([f"it's {row % 777}" for row in range(rows)], pa.large_string())),
            "unsigned": pa.array(np.abs(ids), pa.uint64()),
            "real": pa.array(ids / 2),
            "Pair": pa.StructArray.from_arrays([pa.array(ids), pa.array(-ids)], ["id", "other"]),
        }
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return _data(ROWS)


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("lists")
    lance_sql.write(table, str(found / "t.lance"), max_rows_per_file=50_000)
    lance_sql.open(str(found / "t.lance")).delete("id % 100 = 7")
    return found


@pytest.fixture(scope="module")
def plain(folder: Path) -> Callable[[str], list[tuple[object, ...]]]:
    rows = lance_sql.open(str(folder / "t.lance")).scan().to_table()
    con = duckdb.connect()
    con.register("t", rows)
    return lambda query: con.sql(query).fetchall()


def _lists(con: Connection) -> list[str]:
    """The tables of lists."""
    return [name for name in con.known_to_engine() if name.startswith("lance_list")]


def _listed(constants: Sequence[str]) -> str:
    return f"({', '.join(constants)})"


#: statements, and how many of their lists become tables
SHORTENED = {
    "SELECT id, number FROM t WHERE number IN {ints} ORDER BY id": 1,
    "SELECT count(*), sum(id) FROM t WHERE tiny NOT IN {ints}": 1,
    "SELECT count(*), sum(id) FROM t WHERE small NOT IN {ints} AND id > 50": 1,
    "SELECT count(*) FROM t AS x WHERE x.text IN {texts} AND x.id IN {ints}": 2,
    "SELECT large, count(*) FROM t WHERE large IN {texts} GROUP BY large ORDER BY ALL": 1,
    "SELECT text FROM t WHERE text NOT IN {texts} ORDER BY id LIMIT 20 OFFSET 30": 1,
    'SELECT max("Pair".other) FROM t WHERE "ID" IN {ints}': 1,
    "SELECT count(*) FROM (SELECT * FROM t WHERE id IN {ints}) WHERE tiny IS NULL": 1,
    "WITH found AS (SELECT id FROM t WHERE id IN {ints}) SELECT count(*) FROM found": 1,
    "SELECT count(*) FROM t WHERE id IN {ints} UNION ALL SELECT 5": 1,
    "SELECT (SELECT count(*) FROM t WHERE id IN {ints}) + 1": 1,
    "SELECT count(*) FROM t WHERE tiny IN {far}": 1,
    "SELECT count(*) FROM t WHERE tiny NOT IN {far}": 1,
}
OTHERS = [
    "SELECT count(*) FROM t WHERE id IN {ints} OR tiny = 3",
    "SELECT count(*) FROM t WHERE NOT (id IN {ints})",
    "SELECT count(*) FROM t WHERE id + 1 IN {ints}",
    "SELECT count(*) FROM t WHERE unsigned IN {far}",
    "SELECT count(*) FROM t WHERE real IN {ints}",
    'SELECT count(*) FROM t WHERE t."Pair".id IN {ints}',
    "SELECT count(*) FROM t WHERE text IN {mixed}",
    "SELECT count(*) FROM t WHERE id IN {broken}",
    "SELECT count(*) FROM t AS a LEFT JOIN t AS b ON a.id = b.id WHERE b.id IN {ints}",
    "SELECT count(*) FROM t AS a, t AS b WHERE a.id = b.id AND a.id IN {ints}",
    "SELECT count(*) FILTER (WHERE id IN {ints}) FROM t",
    "SELECT id IN {ints} AS found, count(*) FROM t GROUP BY ALL ORDER BY ALL",
]
LISTS = {
    "ints": _listed(MANY),
    "texts": _listed(TEXTS),
    "far": _listed([str(1_000_000 + number) for number in range(2_000)]),
    "mixed": _listed([*TEXTS, "'' || 'x'"]),
    "broken": _listed([*MANY, "2.5"]),
}


@pytest.fixture
def con(folder: Path) -> Connection:
    return lance_sql.connect(folder)


@needs_duckdb_2
@pytest.mark.parametrize("query", SHORTENED)
def test_lists_are_not_parsed_by_the_engine(
    query: str, con: Connection, plain: Callable[[str], list[tuple[object, ...]]]
) -> None:
    text = query.format(**LISTS)
    result = con.sql(text)
    assert len(_lists(con)) == SHORTENED[query]
    assert result.fetchall() == plain(text)


@pytest.mark.parametrize("query", OTHERS)
def test_other_conditions_keep_their_lists(
    query: str, con: Connection, plain: Callable[[str], list[tuple[object, ...]]]
) -> None:
    text = query.format(**LISTS)
    result = con.sql(text)
    assert not _lists(con)
    assert result.fetchall() == plain(text)


def test_datafusion_gets_the_lists(folder: Path, plain: Callable[[str], list[tuple[object, ...]]]) -> None:
    con = lance_sql.connect(folder, engine="datafusion")
    text = f"SELECT count(*), sum(id) FROM t WHERE number IN {LISTS['ints']}"
    assert con.sql(text).fetchall() == plain(text)


@needs_duckdb_2
def test_scans_decode_the_rows_with_the_constants(con: Connection) -> None:
    result = con.sql(f"SELECT large, real FROM t WHERE number IN {LISTS['ints']}")
    rows = result.arrow().num_rows
    assert result.metrics is not None
    (scan,) = [scan for scan in result.metrics["scans"] if scan["table"] == "t"]
    assert scan["filter"] == "number IN (6,000 constants)"
    assert scan["rows_out"] == rows
    assert scan["rows_left"] < ROWS / 2
    plan = str(con.explain(f"SELECT large FROM t WHERE number IN {LISTS['ints']}", analyze=True))
    assert "number IN (6,000 constants): the scan drops rows first" in plan
    assert "2999" not in plan


def test_tables_of_lists_are_not_shown_and_go_with_their_results(con: Connection) -> None:
    text = f"SELECT count(*) FROM t WHERE id IN {LISTS['ints']}"
    result = con.sql(text)
    assert con.tables() == ["t"]
    for statement in ("SHOW TABLES", "SELECT table_name FROM information_schema.tables"):
        assert con.sql(statement).fetchall() == [("t",)]
    assert result.fetchall() == [(5_970,)]
    assert result.arrow().to_pylist() == [{"count_star()": 5_970}]
    del result
    for _ in range(3):
        assert con.sql(text).fetchall() == [(5_970,)]
    con.sql("SELECT 1").fetchall()
    assert not _lists(con)


def test_errors_do_not_show_the_tables(con: Connection) -> None:
    with pytest.raises(lance_sql.LanceError) as raised:
        con.sql(f"SELECT wrong FROM t WHERE id IN {LISTS['ints']}").fetchall()
    assert "lance_list" not in str(raised.value)


def test_strings_are_compared_as_settings_say(con: Connection) -> None:
    texts = _listed([text.upper() for text in TEXTS])
    count = f"SELECT count(*) FROM t WHERE text IN {texts}"
    assert con.sql(count).fetchall() == [(0,)]
    con.sql("SET default_collation = 'nocase'")
    assert con.sql(count).fetchall() != [(0,)]


def test_what_is_read_as_a_list() -> None:
    assert integers("1, -2,3 ,\n 4, 1").to_pylist() == [-2, 1, 3, 4]  # type: ignore[union-attr]
    assert integers("999999999999999999").to_pylist() == [10**18 - 1]  # type: ignore[union-attr]
    for text in ("1.5", "1, 2e3", "9223372036854775807", "1_000", "'a'", "1, 'a'", "0x1F", "", "1,,2"):
        assert integers(text) is None, text
    assert strings("'a', '''', 'b,c' ,'', 'ä'").to_pylist() == ["a", "'", "b,c", "", "ä"]  # type: ignore[union-attr]
    for text in ("1", "'a', 1", "'a' 'b'", "'a"):
        assert strings(text) is None, text
    assert not long_lists(Statement("SELECT id FROM t WHERE id IN (1, 2, 3)"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Connection, duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("small")
    table = _data(20_000)
    lance_sql.write(table, str(folder / "t.lance"), max_rows_per_file=7_000)
    other = duckdb.connect()
    other.register("t", table)
    return lance_sql.connect(folder), other


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_lists(small: tuple[Connection, duckdb.DuckDBPyConnection], data: st.DataObject) -> None:
    column = data.draw(st.sampled_from(["id", "tiny", "small", "number", "text", "large"]))
    chance = random.Random(data.draw(st.integers(0, 1 << 30)))
    if column in ("text", "large"):
        constants = ["'" + f"it's {chance.randrange(3000)}".replace("'", "''") + "'" for _ in range(700)]
    else:
        width = data.draw(st.sampled_from([100, 1_000, 1 << 20, 1 << 40]))
        constants = [str(chance.randrange(-width, width)) for _ in range(2_000)]
    space = data.draw(st.sampled_from([",", ", ", " ,\n"]))
    negation = data.draw(st.sampled_from(["", "NOT "]))
    more = data.draw(st.sampled_from(["", " AND tiny > 5", " AND large LIKE '%7%'"]))
    order = data.draw(
        st.sampled_from([" ORDER BY id", " ORDER BY id DESC LIMIT 9", " ORDER BY id LIMIT 5 OFFSET 3"])
    )
    text = f"SELECT id, {column} FROM t WHERE {column} {negation}IN ({space.join(constants)}){more}{order}"
    assert len(long_lists(Statement(text))) == 1
    ours, other = small
    assert ours.sql(text).fetchall() == other.sql(text).fetchall()
