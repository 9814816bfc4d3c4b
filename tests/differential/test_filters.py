"""Random filter texts over tables of many types mean the same here, in pylance and in DataFusion.

`LANCE_SQL_FILTERS=20000` compares that many; `LANCE_SQL_SEED` chooses others, or repeats one that failed.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from counts import examples, spread
from lance_engine.errors import LanceError
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.from_sql import parse_sql
from random_filters import compared, random_table

import lance_sql

COUNT = int(os.environ.get("LANCE_SQL_FILTERS", str(examples(200))))
SEED = int(os.environ.get("LANCE_SQL_SEED", "1"))
#: Filters over each table.
EACH = 200


def test_random_filters(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    faults = []
    for seed in range(SEED, SEED + -(-COUNT // EACH)):
        found, wrong = compared(seed, EACH, tmp_path / f"{seed}.lance")
        outcomes += found
        faults += wrong
    assert not faults, f"{dict(outcomes)}\n" + "\n".join(faults)
    assert outcomes["same"] > 0.7 * outcomes.total()


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("filters") / "t.lance")
    lance.write_dataset(random_table(random.Random(3)), path, data_storage_version="2.2")
    return path


def ours(uri: str, where: str) -> list[int]:
    found: list[int] = lance_sql.open(uri).scan(["n"], where).to_table()["n"].to_pylist()
    return found


ALSO_IN_PYLANCE = r"""
f32 = 0.3
f32 IN (0.3, 0.1)
abs(f32) = 0.3
f32 + 0 = 0.3
CAST(f32 AS float) = 0.3
coalesce(f32, 0.3) = 0.3
nullif(f32, 0.3) IS NULL
lf[1] = 0.3
lf[1] IN (0.3)
lf = [0.3]
array_has(lf, 0.3)
array_has(lf, 0.3::float)
array_has_any(lf, [0.3])
array_position(lf, 0.3) = 1
array_has(lg, 0.3)
array_has(lg, 0.0)
array_has_any(ld, [0.3])
array_has_all(ld, [0.3, 1])
array_has([0.3, 1.0], f64)
array_has([1, 2, 3], i64)
array_has(lday, ts)
array_has(li8, 200)
array_has(li8, i64)
de + 0.2 = 0.3
de / 3 > 0.1
de % 0.2 = 0.1
dx * dx = 1
dw + dx = 2
i32 * 0.1 = 0.3
u64 % 2 = 1
u64 * i64 = 7
_rowid % 2 = 1
_rowid * 2 = 2
de - de = g64 * -1.0 * 0.0
de - de > g64 * -1.0 * 0.0
nullif(de, 0.3) IS NULL
nullif(i64, u64) IS NULL
nullif(i16, i32) = 1
nullif(d, ts) IS NULL
nullif(0.0, f64) IS NULL
coalesce(i64, u64) = 1
coalesce(u64, 1.5) = 1.5
nvl(i8, 300) = 300
nvl(f16, f32) = 1
length(li) = 3
length(b) = 1
cardinality(li) = 2
s = s2
s < named_struct('a', 1, 'b', 'a')
s IN (named_struct('b', 'a', 'a', 1))
s IS NOT DISTINCT FROM s2
li < [1]
text > lt
li IN ([1], [0])
vector = vector
list_contains(lb, X'61')
text[1] = 'a'
vector[2] = 1
t LIKE '\\'
t LIKE 'a\%b'
t LIKE '\a'
t LIKE '\'
t LIKE 'a\%b' ESCAPE '\'
t NOT ILIKE '%\_%'
tb = TIMESTAMP '1970-01-01 01:00:00'
tb = DATE '1970-01-01'
tb < ts
tb IS DISTINCT FROM ts
CAST(tb AS date) = DATE '1970-01-01'
date_trunc('day', tb) = TIMESTAMP '1970-01-01 00:00:00'
signum(i8) / 2 = 0.5
coalesce(CAST(f16 AS decimal), 2.5) IS NULL
coalesce(CAST(f64 AS decimal), NULL, 2.5) IS NOT NULL
nvl(CAST(f32 AS int), 2) IS NULL
CAST(1e40 AS float) > 1
try_cast(1e40 AS float) IS NULL
"""


@pytest.mark.parametrize("where", ALSO_IN_PYLANCE.strip().splitlines())
def test_filters_mean_the_same_as_in_pylance(uri: str, where: str) -> None:
    found = lance.dataset(uri).to_table(columns=["n"], filter=where)["n"].to_pylist()
    assert ours(uri, where) == found


ALIKE = [
    ("array_has(ld, 0.3)", "array_has_any(ld, [0.3])"),
    ("array_has(ld, 1)", "array_has_any(ld, [1.0])"),
    ("array_has(lu, -1)", "lu IS NOT NULL AND false"),
    ("array_has(lu, 18446744073709551615)", "array_has_any(lu, [18446744073709551615])"),
    ("array_position(ld, 0.3) = 1", "ld[1] = 0.3"),
    ("i64 BETWEEN SYMMETRIC 7 AND -1", "i64 BETWEEN -1 AND 7"),
    ("i64 NOT BETWEEN SYMMETRIC 7 AND -1", "i64 NOT BETWEEN -1 AND 7"),
    ("i64 BETWEEN ASYMMETRIC 7 AND -1", "false"),
    ("cardinality(ll) = 1", "array_length(flatten(ll)) = 1"),
    ("u64 / 2 = 1", "u64 IN (2, 3)"),
    ("u64 / i64 = 0", "(u64 < i64 OR (i64 < 0 AND u64 < 0 - (i64 + 1))) AND i64 <> 0"),
    ("q.f IN (0.5, NULL)", "q.f = 0.5"),
    ("NOT (f32 > 0.3)", "f32 <= 0.3"),
    ("(f32 > 0.3) IS TRUE", "f32 > 0.3"),
    ("i8 + i8 = 254", "i8 = 127"),
    ("i64 % -1 = 0", "i64 IS NOT NULL"),
    ("ll = [[1]]", "array_to_string(flatten(ll), ',') = '1' AND array_length(ll) = 1"),
    ("tb = '1970-01-01 01:00:00'", "tb = TIMESTAMP '1970-01-01 01:00:00'"),
    ("tb = '1970-01-01T00:00:00Z'", "tb = TIMESTAMP '1970-01-01 01:00:00'"),
]


@pytest.mark.parametrize(("where", "alike"), ALIKE)
def test_what_pylance_refuses_or_gets_wrong(uri: str, where: str, alike: str) -> None:
    assert ours(uri, where) == ours(uri, alike)


def words() -> list[str]:
    """Types, keywords and functions."""
    from sqlglot.dialects.duckdb import DuckDB

    others = [
        "text",
        "vector",
        "list",
        "array",
        "length",
        "cardinality",
        "now",
        "today",
        "date_part",
        "x",
        "like",
    ]
    return sorted({*others, *(word.lower() for word in DuckDB.Tokenizer.KEYWORDS if word.isidentifier())})


#: Words of conditions, which are quoted where they name columns.
RESERVED = re.compile(
    "all|and|any|as|between|case|distinct|else|end|exists|false|for|from|ilike|in|interval|is|like|not|null|or|"
    "select|some|then|true|when|where|with"
)


def test_words_are_names_of_columns() -> None:
    """Also before a subscript, and as fields."""
    wrong = []
    for word in spread(words(), 40):
        values = pa.array([[5, 1], [5, 2]])
        batch = pa.record_batch({"n": [0, 1], word: values, "s_": [{word: 1}, {word: 2}]})
        conditions = [f'"{word}"[2] = 1 AND "{word}" = [5, 1]', f"`{word}`[2] = 1 AND s_['{word}'] = 1"]
        if not RESERVED.fullmatch(word):
            conditions += [
                f"{word}[2] = 1 AND NOT {word}[1] = 4 AND array_has({word}, 1)",
                f"{word} IS NOT NULL AND {word} = [5, 1] AND s_.{word} = 1",
            ]
        for where in conditions:
            try:
                found = evaluate(parse_sql(where, batch.schema, official=True), batch).to_pylist()
            except LanceError as error:
                found = error
            if found != [True, False]:
                wrong.append((where, found))
    assert not wrong
