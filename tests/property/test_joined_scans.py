"""Joins return the same rows whether or not their scans pass keys to each other."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.engines import join_keys, key_conditions, pushdown
from lance_sql.pushdown import join_filters

SEEDS = range(3)


@pytest.fixture(autouse=True)
def every_table_is_large(monkeypatch):
    """Tables of any size pass keys, for any number of rows."""
    monkeypatch.setattr(join_filters, "_SMALL_BYTES", 0)
    monkeypatch.setattr(join_filters, "_LARGER", 0)
    monkeypatch.setattr(key_conditions, "MOST_PASSING_SHARE", 2)
    monkeypatch.setattr(key_conditions, "MOST_PASSING_SHARE_FILTERED", 2)
    monkeypatch.setattr(join_keys, "_FEW_PASSING_SHARE", 2)
    monkeypatch.setattr(join_keys, "_FEW_PASSING_SHARE_FILTERED", 2)
    monkeypatch.setattr(pushdown, "_SELECTIVE_KEYS_SHARE", 2)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = np.random.default_rng(7)
    place = tmp_path_factory.mktemp("joins")

    def numbers(rows, most, kind=None, nulls=0.1):
        values = made.integers(-most // 3, most, rows)
        array = pa.array(
            values, pa.int32() if kind == pa.date32() else kind or pa.int64(), mask=made.random(rows) < nulls
        )
        return array.cast(kind or pa.int64())

    def write(name, rows, **columns):
        fraction = {
            "g": numbers(rows, 20, pa.int32()),
            "s": pa.array(made.choice(["a", "b", "c", None], rows)),
        }
        lance_sql.write(
            pa.table(columns | fraction), place / f"{name}.lance", max_rows_per_file=max(1, rows // 3)
        )

    write("one", 60, k=numbers(60, 40), x=numbers(60, 30, pa.int32()), d=numbers(60, 50, pa.date32()))
    write("two", 300, k=numbers(300, 60, pa.int16()), y=numbers(300, 30), d=numbers(300, 50, pa.date32()))
    write("three", 900, k=numbers(900, 90), x=numbers(900, 25), y=numbers(900, 40, pa.int32()))
    write("nothing", 0, k=pa.array([], pa.int64()), x=pa.array([], pa.int32()))
    lance_sql.open(place / "three.lance").delete("g = 3")
    return place


def conditions(random_, tables):
    return [
        random_.choice(
            [
                f"{alias}.g < {random_.randint(-3, 15)}",
                f"{alias}.s = 'a'",
                f"{alias}.k IN (1, 2, 3, 5, 8, 13)",
                f"{alias}.k BETWEEN 0 AND {random_.randint(2, 40)}",
                f"({alias}.g = 4 OR {alias}.s IS NULL)",
            ]
        )
        for alias in tables
        if random_.random() < 0.6
    ]


COLUMNS = {
    "one": ["k", "x", "g"],
    "two": ["k", "y", "g"],
    "three": ["k", "x", "y", "g"],
    "nothing": ["k", "x", "g"],
}


def equality(random_, left, right, tables):
    return (
        f"{left}.{random_.choice(COLUMNS[tables[left]])} = {right}.{random_.choice(COLUMNS[tables[right]])}"
    )


def statement(random_):
    """A random join of two or three tables, with subqueries."""
    names = random_.sample(["one", "two", "three"], random_.choice([2, 2, 3]))
    if random_.random() < 0.1:
        names[-1] = "nothing"
    tables = {f"t{number}": name for number, name in enumerate(names)}
    aliases = list(tables)
    source, wheres = f"{names[0]} t0", conditions(random_, aliases[:1])
    for number, alias in enumerate(aliases[1:], 1):
        on = equality(random_, aliases[random_.randrange(number)], alias, tables)
        kind = random_.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ","])
        if kind == ",":
            source, wheres = f"{source} CROSS JOIN {tables[alias]} {alias}", [*wheres, on]
        else:
            also = conditions(random_, [alias])
            source = f"{source} {kind} {tables[alias]} {alias} ON {' AND '.join([on, *also])}"
        wheres += conditions(random_, [alias]) if random_.random() < 0.5 else []
    spare = random_.choice(["one", "two", "three", "three", "two"])
    inner = {**tables, "u": spare}
    pick = random_.random()
    correlated = f"{equality(random_, random_.choice(aliases), 'u', inner)}"
    extra = "".join(f" AND {condition}" for condition in conditions(random_, ["u"]))
    if pick < 0.25:
        wheres.append(
            f"{random_.choice(['', 'NOT '])}EXISTS (SELECT * FROM {spare} u WHERE {correlated}{extra})"
        )
    elif pick < 0.45:
        column, given = random_.choice(COLUMNS[names[0]]), random_.choice(COLUMNS[spare])
        limits = random_.choice(["", " GROUP BY 1", " GROUP BY 1 HAVING count(*) > 2"])
        nots = random_.choice(["", "", "NOT "])
        wheres.append(f"t0.{column} {nots}IN (SELECT u.{given} FROM {spare} u WHERE u.g > 1{extra}{limits})")
    elif pick < 0.6:
        wheres.append(f"t0.g >= (SELECT min(u.g) FROM {spare} u WHERE {correlated}{extra})")
    elif pick < 0.7:
        wheres.append(f"EXISTS (SELECT count(*) FROM {spare} u WHERE {correlated}{extra})")
    elif pick < 0.8:
        wheres.append(f"(t0.g = 2 OR EXISTS (SELECT 1 FROM {spare} u WHERE {correlated}{extra}))")
    where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
    selected = ", ".join(f"{alias}.{column}" for alias in aliases for column in COLUMNS[tables[alias]])
    return f"SELECT {selected} FROM {source}{where}"


def rows(connection, text):
    return sorted(map(repr, connection.sql(text).fetchall()))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("seed", SEEDS)
def test_keys_change_no_rows(directory, engine, seed, monkeypatch):
    random_ = random.Random(seed)
    used: list[join_keys.KeyUse] = []
    begin = join_filters.JoinedQuery.to_table

    def noted(query, run):
        rows = begin(query, run)
        used.extend(run.join_keys.uses)
        return rows

    monkeypatch.setattr(join_filters.JoinedQuery, "to_table", noted)
    with_keys = join_filters.JoinFilters.keys
    # enough for some of the tables, or for all
    options = {"materialize_bytes": [1 << 28, 8_000][seed % 2]} if engine == "datafusion" else {}
    with lance_sql.connect(directory, engine=engine, **options) as connection:
        for _ in range(14):
            text = statement(random_)
            monkeypatch.setattr(join_filters.JoinFilters, "keys", with_keys)
            found = rows(connection, text)
            assert found == rows(connection, text), text  # with what was learned in the first run
            monkeypatch.setattr(join_filters.JoinFilters, "keys", lambda *_: None)
            assert found == rows(connection, text), text
    assert any(use.applied for use in used)
