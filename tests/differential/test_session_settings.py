"""Queries mean the same in a session as in plain DuckDB under settings that change what queries mean.

The tables are changed by statements first: nested values, columns of other types, deleted and merged rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import lance_sql

STATEMENTS = r"""
CREATE TABLE t(id INT, g VARCHAR, x DOUBLE, ts TIMESTAMPTZ, s STRUCT(a INT, b STRUCT(c VARCHAR, d
    INT[])), m MAP(VARCHAR, INT), l INT[])
INSERT INTO t SELECT i, CASE WHEN i%7=0 THEN NULL ELSE chr((65+i%5)::INT) || CASE WHEN i%2=0 THEN 'é'
    ELSE 'E' END END, CASE WHEN i%11=0 THEN 'nan'::DOUBLE ELSE i/3.0 END, '2024-03-30
    20:00:00+00'::TIMESTAMPTZ + INTERVAL (i) HOUR, {'a': i, 'b': {'c': 'c'||i, 'd': [i, NULL]}}, MAP
    {'k': i}, CASE WHEN i%4=0 THEN NULL ELSE range(i%3)::INT[] END FROM range(200) r(i)
CREATE TABLE u AS SELECT id*2 AS id, g, x+0.25 AS y FROM t WHERE id % 3 = 0
CREATE VIEW v1 AS SELECT id, g, x FROM t WHERE id > 20
CREATE VIEW v2 AS SELECT g, count(*) AS n, max(id) AS mx FROM v1 GROUP BY g
CREATE MACRO mt(k) AS TABLE SELECT id, g FROM t WHERE id > k
CREATE MACRO ms(k) AS (SELECT max(id) FROM t WHERE id < k)
UPDATE t SET s = {'a': s.a + 1, 'b': {'d': list_append(s.b.d, 9), 'c': upper(s.b.c)}} WHERE id % 5 = 0
UPDATE t SET l = list_transform(l, lambda e: e * 2), m = MAP {'z': id} WHERE id < 50
UPDATE t SET x = NULL WHERE id BETWEEN 60 AND 65
DELETE FROM t WHERE id IN (SELECT id FROM u WHERE y > 20)
MERGE INTO t USING (SELECT id, {'a': -1, 'b': {'c': 'M', 'd': []::INT[]}} AS s FROM u) q USING (id) WHEN
    MATCHED THEN UPDATE SET s = q.s WHEN NOT MATCHED AND q.id < 300 THEN INSERT (id, s) VALUES (q.id,
    q.s)
ALTER TABLE t ADD COLUMN extra INT DEFAULT 5
UPDATE t SET extra = id WHERE g > 'C'
ALTER TABLE t ALTER COLUMN extra TYPE VARCHAR
""".strip().replace("\n    ", " ")

QUERIES = r"""
SELECT * FROM t ORDER BY id, s.a, extra
SELECT * FROM v2 ORDER BY ALL
SELECT id FROM t WHERE g = 'be' ORDER BY id
SELECT count(*), min(g) FROM t WHERE g > 'b'
SELECT id FROM t WHERE g IN ('be', 'cé') ORDER BY id
SELECT t.id FROM t JOIN u ON lower(t.g) = u.g ORDER BY ALL
SELECT * FROM mt(150) ORDER BY id
SELECT ms(100), ms(-5)
SELECT g COLLATE NOCASE AS c, count(*) FROM t GROUP BY 1 ORDER BY 1, 2
SELECT id FROM t WHERE g COLLATE NOCASE = 'be' ORDER BY id
SELECT id FROM t WHERE g COLLATE NOACCENT = 'Ae' ORDER BY id
SELECT max(g COLLATE NOCASE), min(g COLLATE NOACCENT) FROM t
SELECT id, ts, date_trunc('day', ts), extract(hour FROM ts) FROM t WHERE ts >= '2024-03-31 01:00' ORDER
    BY id LIMIT 20
SELECT ts::DATE AS d, count(*) FROM t GROUP BY d ORDER BY d
SELECT count(*) FROM t WHERE ts::DATE = DATE '2024-04-01'
SELECT count(*) FROM t WHERE ts BETWEEN '2024-04-01' AND '2024-04-02'
SELECT count(*) FROM t WHERE ts = TIMESTAMP '2024-04-01 00:00:00'
SELECT id FROM t ORDER BY g, id LIMIT 10
SELECT id FROM t ORDER BY x DESC, id LIMIT 10
SELECT id FROM t ORDER BY x, id DESC LIMIT 10 OFFSET 3
SELECT id, 7 / 2, id / 2 FROM t ORDER BY id LIMIT 5
SELECT id FROM t WHERE id / 2 = 3 ORDER BY id
SELECT ID, "S"."A", S.B.C FROM T WHERE G IS NOT NULL ORDER BY Id LIMIT 5
SELECT id, row_number() OVER (PARTITION BY g ORDER BY x NULLS LAST, id) FROM t ORDER BY id
SELECT id, sum(x) OVER (ORDER BY id ROWS 3 PRECEDING) FROM t WHERE NOT isnan(x) ORDER BY id
SELECT g, id FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY id DESC) = 1 ORDER BY ALL
SELECT t.id, q.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.id > t.id) q ORDER BY t.id, q.n
SELECT id FROM t WHERE EXISTS (FROM u WHERE u.id = t.id AND u.g IS NOT DISTINCT FROM t.g) ORDER BY id
SELECT id, (SELECT max(y) FROM u WHERE u.g = t.g AND u.id < t.id) FROM t ORDER BY id
SELECT id FROM t WHERE id NOT IN (SELECT id FROM u) ORDER BY id
SELECT id FROM t WHERE x > ALL (SELECT y FROM u WHERE u.id < 10) ORDER BY id
WITH RECURSIVE r(n) AS (SELECT min(id) FROM t UNION ALL SELECT n + 7 FROM r WHERE n + 7 IN (SELECT id
    FROM t)) SELECT * FROM r ORDER BY n
WITH RECURSIVE r AS (SELECT id, 0 AS k FROM t WHERE id = 4 UNION SELECT u.id, k + 1 FROM r JOIN u ON
    u.id = r.id * 3 WHERE k < 5) FROM r ORDER BY ALL
PIVOT (SELECT id % 3 AS k, g, x FROM t WHERE NOT isnan(x)) ON k USING sum(x), count(*) GROUP BY g ORDER
    BY g
FROM t PIVOT (count(*) FOR g IN ('AE', 'Bé') GROUP BY extra) ORDER BY ALL
UNPIVOT (SELECT id, x, id * 1.0 AS z FROM t) ON x, z INTO NAME n VALUE q ORDER BY ALL
SELECT t.id, u.id, u.y FROM t ASOF JOIN u ON t.id >= u.id ORDER BY ALL
SELECT t.id, u.id FROM t ASOF LEFT JOIN u ON t.g = u.g AND t.id > u.id ORDER BY ALL
SELECT count(*) FROM (SELECT t.id, u.id AS b FROM t POSITIONAL JOIN u)
SELECT l, count(*) FROM t GROUP BY l ORDER BY ALL
SELECT s.b, id FROM t WHERE s.b.d[2] IS NULL ORDER BY id
SELECT id FROM t WHERE s > {'a': 100, 'b': {'c': '', 'd': []}} ORDER BY id
SELECT id FROM t WHERE list_contains(l, 2) OR m['z'] = 3 ORDER BY id
SELECT unnest(l) AS e, id FROM t ORDER BY ALL
SELECT id, unnest(s, recursive := true) FROM t ORDER BY id, 2 LIMIT 20
SELECT grouping(g, extra), g, extra, count(*) FROM t WHERE id < 40 GROUP BY CUBE (g, extra) ORDER BY ALL
SELECT arg_max(id, x), arg_min(g, id), mode(extra), median(id) FROM t WHERE NOT isnan(x)
SELECT count(DISTINCT g), count(DISTINCT l), list(DISTINCT g ORDER BY g) FROM t
SELECT a.id FROM t a SEMI JOIN u b ON a.id = b.id AND b.y > 3 ORDER BY 1
SELECT a.id FROM t a ANTI JOIN u b USING (id) ORDER BY 1
SELECT * FROM (SELECT id FROM t EXCEPT SELECT id FROM u) ORDER BY 1
SELECT * FROM (SELECT g FROM t INTERSECT ALL SELECT g FROM u) ORDER BY 1
SELECT id, x FROM t WHERE x = 'nan' ORDER BY id
SELECT id FROM t WHERE x > 60 ORDER BY id
SELECT min(x), max(x), count(x) FROM t
SELECT * EXCLUDE (s, m), s.* FROM t ORDER BY ALL LIMIT 10
SELECT COLUMNS('^(id|x)$') FROM t ORDER BY ALL LIMIT 5
SELECT id FROM t WHERE g LIKE '%é' AND g ILIKE 'a%' ORDER BY id
SELECT id FROM t WHERE g SIMILAR TO '[AB].*' ORDER BY id
SELECT count(*) FROM t WHERE typeof(extra) = 'VARCHAR' AND extra > '5'
SELECT t.id, w.mx FROM t JOIN v2 w ON w.g = t.g AND w.mx = t.id ORDER BY ALL
""".strip().replace("\n    ", " ")

SETTINGS = [
    "TimeZone = 'UTC'",
    "TimeZone = 'America/New_York'",
    "TimeZone = 'Asia/Kolkata'",
    "default_null_order = 'nulls_first'",
    "default_order = 'DESC'",
    "integer_division = true",
    "default_collation = 'NOCASE'",
]


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    folder = tmp_path_factory.mktemp("settings")
    with lance_sql.connect(folder, engine="duckdb") as con, duckdb.connect() as plain:
        for one in (con, plain):
            one.execute("SET TimeZone = 'UTC'")
            for statement in STATEMENTS.splitlines():
                one.execute(statement)
        yield con, plain


@pytest.mark.sampled(4)
@pytest.mark.parametrize("setting", SETTINGS)
def test_queries_mean_the_same_as_in_duckdb(connections: tuple[Any, Any], setting: str) -> None:
    name = setting.partition(" ")[0]
    before = connections[1].execute(f"SELECT current_setting('{name}')").fetchall()[0][0]
    differences = []
    for one in connections:
        one.execute(f"SET {setting}")
    try:
        for query in QUERIES.splitlines():
            found, expected = (repr(one.execute(query).fetchall()) for one in connections)
            if found != expected:  # by text: NaN differs from itself
                differences.append(f"{query}\n    here   {found:.300}\n    DuckDB {expected:.300}")
    finally:
        for one in connections:
            one.execute(f"SET {name} = '{before}'")
    assert not differences, "\n".join(differences)


def test_the_settings_change_what_queries_mean(connections: tuple[Any, Any]) -> None:
    """At least one query has another answer under each setting, or the comparison proves nothing."""
    plain = connections[1]

    def answers() -> list[str]:
        return [repr(plain.execute(query).fetchall()) for query in QUERIES.splitlines()]

    usual = answers()
    for setting in SETTINGS[1:]:
        name = setting.partition(" ")[0]
        before = plain.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]
        plain.execute(f"SET {setting}")
        assert answers() != usual, setting
        plain.execute(f"SET {name} = '{before}'")
