"""Testing ``IN (SELECT ...)`` before a join in DataFusion returns the same rows as after it."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.engines.datafusion import materialize
from lance_sql.text.semi_joins import JoinedTable, semi_joins_first

TABLES = {"small": ["id", "a", "s"], "mid": ["mid_id", "a", "b"], "large": ["b", "c", "s"]}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = np.random.default_rng(3)
    place = tmp_path_factory.mktemp("semi")
    for (name, columns), rows in zip(TABLES.items(), (30, 200, 700), strict=True):
        data = {
            column: pa.array(made.choice(["x", "y", "z"], rows), mask=made.random(rows) < 0.1)
            if column == "s"
            else pa.array(made.integers(0, 25, rows), mask=made.random(rows) < 0.1)
            for column in columns
        }
        lance_sql.write(pa.table(data), place / f"{name}.lance")
    return place


def statement(random_):
    names = random_.sample(list(TABLES), random_.choice([2, 3]))
    aliases = [random_.choice([name, f"t{number}"]) for number, name in enumerate(names)]
    columns = [(alias, column) for alias, name in zip(aliases, names, strict=True) for column in TABLES[name]]

    def column(numbers=True):
        alias, found = random_.choice([pair for pair in columns if numbers == (pair[1] != "s")])
        plain = [pair for pair in columns if pair[1] == found]
        return found if len(plain) == 1 and random_.random() < 0.5 else f"{alias}.{found}"

    def subquery():
        name = random_.choice(list(TABLES))
        given = random_.choice([found for found in TABLES[name] if found != "s"])
        ends = [
            "",
            f" WHERE {given} > {random_.randint(0, 20)}",
            " WHERE s = 'x'" if "s" in TABLES[name] else "",
            f" GROUP BY {given} HAVING count(*) > {random_.randint(1, 30)}",
            f" WHERE {given} = {aliases[0]}.{TABLES[names[0]][1]}",  # correlated
        ]
        return f"(SELECT {given} FROM {name}{random_.choices(ends, [3, 3, 3, 3, 1])[0]})"

    def condition():
        return random_.choice(
            [
                *[lambda: f"{column()} IN {subquery()}"] * 8,
                lambda: f"{column()} NOT IN {subquery()}",
                lambda: f"NOT {column()} IN {subquery()}",
                lambda: f"{column()} + 1 IN {subquery()}",
                lambda: f"({column()} = 3 OR {column()} IN {subquery()})",
                lambda: f"{column()} BETWEEN 2 AND {random_.randint(2, 30)}",
                lambda: f"CASE WHEN {column()} > 3 AND {column()} < 9 THEN FALSE ELSE TRUE END",
                lambda: f"{column(numbers=False)} <> 'y'" if any(c == "s" for _, c in columns) else "TRUE",
            ]
        )()

    sources = [
        name if name == alias else f"{name}{random_.choice([' AS', ''])} {alias}"
        for name, alias in zip(names, aliases, strict=True)
    ]
    text, wheres = sources[0], [condition() for _ in range(random_.randint(1, 3))]
    for number, source in enumerate(sources[1:], 1):
        pair = [
            f"{aliases[at]}.{random_.choice([c for c in TABLES[names[at]] if c != 's'])}"
            for at in (number - 1, number)
        ]
        kind = random_.choice([*[",", "JOIN", "INNER JOIN"] * 3, "LEFT JOIN"])
        if kind == ",":
            text, wheres = f"{text}, {source}", [*wheres, " = ".join(pair)]
        else:
            text = f"{text} {kind} {source} ON {' = '.join(pair)}"
    selected = ", ".join(f"{alias}.{found}" for alias, found in columns)
    return f"SELECT {random_.choice(['*', selected])} FROM {text} WHERE {' AND '.join(wheres)}"


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_are_the_same(directory, seed, monkeypatch):
    random_ = random.Random(seed)
    changed = 0
    with lance_sql.connect(directory, engine="datafusion") as connection:
        for _ in range(16):
            text = statement(random_)
            changed += semi_joins_noted(monkeypatch, connection, text)
    assert changed >= 3


def semi_joins_noted(monkeypatch, connection, text):
    """Compare the rows of a statement as it is and changed; whether it was changed."""
    texts = []

    def noted(text, *rest):
        texts.append((text, semi_joins_first(text, *rest)))
        return texts[-1][1]

    answers = []
    for change in (noted, lambda text, *_: text):
        monkeypatch.setattr(materialize, "semi_joins_first", change)
        try:
            answers.append(connection.sql(text).arrow())
        except lance_sql.SqlError:  # a subquery that DataFusion cannot run
            answers.append(None)
    one, other = answers
    assert (one is None) == (other is None), text
    if one is not None:
        assert one.schema.names == other.schema.names, text
        assert sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist())), text
    return any(before != after for before, after in texts)


KNOWN = {"a": JoinedTable(["id", "x"], 10), "b": JoinedTable(["id", "y"], 100)}


def changed(text, is_query=lambda text: True):
    return semi_joins_first(text, KNOWN, is_query)


def test_a_condition_moves_to_its_table():
    assert changed("SELECT y FROM a, b q WHERE a.id = q.id AND x IN (SELECT y FROM b) ORDER BY y") == (
        'SELECT y FROM (SELECT * FROM a AS "a" WHERE x IN (SELECT y FROM b)) AS "a", b q '
        "WHERE a.id = q.id AND TRUE ORDER BY y"
    )


@pytest.mark.parametrize(
    "where",
    [
        "y IN (SELECT x FROM a)",  # of the largest table
        "id IN (SELECT x FROM a)",  # of both
        "x NOT IN (SELECT y FROM b)",
        "x IN (SELECT y FROM b) OR y = 1",
        "x IN (SELECT y FROM b) IS TRUE",
        "CASE WHEN y = 1 AND x IN (SELECT y FROM b) AND y = 2 THEN TRUE END",
        "x IN (1, 2)",
        "x IN (SELECT y FROM b) AND y = ?",
        "z IN (SELECT y FROM b)",
    ],
)
def test_other_conditions_stay(where):
    text = f"SELECT 1 FROM a, b WHERE {where}"
    assert changed(text) == text


@pytest.mark.parametrize(
    "source",
    [
        "a LEFT JOIN b ON a.id = b.id",
        "a, b, c",
        "a",
        "a a, b a",
        "a NATURAL JOIN b",
        "a, (SELECT * FROM b) b",
    ],
)
def test_other_joins_stay(source):
    text = f"SELECT 1 FROM {source} WHERE x IN (SELECT y FROM b)"
    assert changed(text) == text


def test_correlated_subqueries_stay():
    text = "SELECT 1 FROM a, b WHERE x IN (SELECT 1 FROM b c WHERE c.y = b.y)"
    assert changed(text, lambda _: False) == text
