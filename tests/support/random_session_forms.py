"""Forms of statements that sessions of `random_sessions` use now and then: some that few people write."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

#: A name of a table, a condition over it, a column of a table, and a value of a column, as texts.
Table = Callable[[], str]
Condition = Callable[[str], str]
Name = Callable[[str, list[str]], str]
Value = Callable[[str], str]

#: Columns of all tables that most values fit.
_PLAIN = ["id", "x", "s", "d"]


class Forms:
    """Texts of statements over tables and columns that somebody else chooses."""

    def __init__(self, random: Random, table: Table, test: Condition, name: Name, value: Value) -> None:
        self._random, self._table, self._test, self._name, self._value = random, table, test, name, value

    def change(self) -> str:
        """A change of rows with joins, subqueries, CTEs, keys and RETURNING."""
        random, table, other = self._random, self._table(), self._table()
        name = self._name(table, _PLAIN)
        value, number = self._value(name), random.randint(0, 4)
        returned = random.choice(["", "", " RETURNING id", " RETURNING *", f" RETURNING {name} AS r, id + 1"])
        source = random.choice(
            [f"{other} AS o", f"(SELECT * FROM {other} WHERE id < 3) o", f"(VALUES ({number}), (9)) o(id)"]
        )
        return random.choice(
            [
                f"UPDATE {table} SET {name} = {value} FROM {source} WHERE {table}.id = o.id + 1{returned}",
                f"UPDATE {table} AS k SET {name} = {value} WHERE EXISTS (SELECT 1 FROM {source} "
                f"WHERE o.id = k.id){returned}",
                f"UPDATE {table} SET id = (SELECT max(o.id) FROM {source}) WHERE id = {number}{returned}",
                f"UPDATE {table} SET id = id + 1, {name} = {value} WHERE {self._test(table)}{returned}",
                f"DELETE FROM {table} USING {source} WHERE {table}.id = o.id{returned}",
                f"DELETE FROM {table} WHERE id = (SELECT min(id) FROM {other}){returned}",
                f"WITH q AS (SELECT id FROM {source}) DELETE FROM {table} WHERE id IN (FROM q){returned}",
                f"WITH q AS (SELECT id + 1 AS id FROM {source}) INSERT INTO {table} (id) FROM q{returned}",
                f"INSERT INTO {table} (id, {name if name != 'id' else 'x'}) SELECT id, NULL FROM {source} "
                f"WHERE o.id < 3{returned}",
                f"INSERT INTO {table} SELECT * FROM {other} WHERE id = {number}{returned}",
                f"INSERT INTO {table} DEFAULT VALUES{returned}",
                f"INSERT INTO {table} BY NAME SELECT {number} AS id, {value} AS {name}{returned}",
                f"TRUNCATE {table}" if random.random() < 0.2 else f"DELETE FROM {table} WHERE false",
                f"MERGE INTO {table} USING {source} ON {table}.id = o.id "
                f"WHEN MATCHED AND {table}.id = {number} THEN DELETE "
                f"WHEN MATCHED THEN UPDATE SET {name} = {value} "
                f"WHEN NOT MATCHED THEN INSERT (id) VALUES (o.id)",
                f"MERGE INTO {table} USING {source} USING (id) WHEN NOT MATCHED THEN INSERT (id) "
                "VALUES (o.id) WHEN NOT MATCHED BY SOURCE THEN DELETE",
                *self._keyed(value if name == "x" else str(number)),
            ]
        )

    def _keyed(self, value: str) -> list[str]:
        """Changes of a table with a key, which some sessions have."""
        random = self._random
        rows = ", ".join(f"({random.randint(0, 5)}, {value})" for _ in range(random.randint(1, 3)))
        test = random.choice(["", " WHERE excluded.x > 0", " WHERE k.id > 2"])
        return [
            f"INSERT INTO k VALUES {rows}",
            f"INSERT OR IGNORE INTO k VALUES {rows}",
            f"INSERT OR REPLACE INTO k VALUES {rows}",
            f"INSERT INTO k VALUES {rows} ON CONFLICT DO NOTHING",
            f"INSERT INTO k VALUES {rows} ON CONFLICT (id) DO UPDATE SET x = excluded.x{test}",
            f"INSERT INTO k (id) SELECT id FROM {self._table()} ON CONFLICT (id) DO UPDATE SET x = id",
            f"UPDATE k SET id = id + {random.randint(0, 2)} WHERE id > {random.randint(0, 4)}",
            f"UPDATE k SET x = {value}",
            f"DELETE FROM k WHERE id = {random.randint(0, 5)}",
        ]

    def query(self) -> str:
        random, source, other = self._random, self._table(), self._table()
        name, number = self._name(source, _PLAIN), random.randint(0, 3)
        return random.choice(
            [
                f"FROM {source} SELECT {name} AS a, count(*) GROUP BY a",
                f"SELECT * EXCLUDE (id) FROM {source}",
                f"SELECT * REPLACE (id + 1 AS id) FROM {source}",
                f"SELECT * RENAME (id AS renamed) FROM {source}",
                f"SELECT id AS {name}, {name} FROM {source}",
                f"SELECT DISTINCT ON (id) id FROM {source}",
                f"SELECT id, sum(id) OVER (ORDER BY id ROWS 1 PRECEDING) "
                f"FROM (SELECT DISTINCT id FROM {source})",
                f"SELECT id, row_number() OVER (PARTITION BY {name} ORDER BY id) % 1 FROM {source}",
                f"SELECT a.id, b.id FROM {source} a ASOF JOIN (SELECT DISTINCT id FROM {other}) b "
                "ON a.id >= b.id",
                f"SELECT a.id, b.id FROM {source} a LEFT JOIN {other} b ON a.id = b.id AND b.id > {number}",
                f"SELECT a.id, b.id FROM {source} a FULL JOIN {other} b USING (id)",
                f"SELECT id FROM {source} a ANTI JOIN {other} b USING (id)",
                f"SELECT count(*) FROM {source} NATURAL JOIN {other}",
                f"(SELECT id FROM {source}) UNION ALL BY NAME (SELECT id, {number} AS n FROM {other})",
                f"SELECT id FROM {source} INTERSECT ALL SELECT id FROM {other}",
                f"WITH RECURSIVE r(n) AS (SELECT {number} UNION ALL SELECT n + 1 FROM r WHERE n < 5) "
                f"SELECT n, (SELECT count(*) FROM {source} WHERE id = n) FROM r",
                f"WITH q AS MATERIALIZED (SELECT id FROM {source}) "
                "SELECT a.id FROM q a, q b WHERE a.id = b.id",
                f"SELECT list(id ORDER BY id), [i + 1 FOR i IN list(id ORDER BY id)] FROM {source}",
                f"SELECT unnest([id, {number}]) FROM {source}",
                f"SELECT max_by(id, id), arg_min(id, id, 2), mode(id % 1) FROM {source}",
                f"SELECT sum(id) FILTER (WHERE id > {number}), count(DISTINCT {name}) FROM {source}",
                f"SELECT string_agg(id::VARCHAR, ',' ORDER BY id) FROM {source}",
                f"PIVOT {source} ON id % 2 IN (0, 1) USING count(*) GROUP BY id",
                f"UNPIVOT (SELECT id, id + 1 AS b FROM {source}) ON id, b INTO NAME n VALUE v",
                f"SELECT id FROM {source} WHERE id > ALL (SELECT id FROM {other} WHERE id < {number})",
                f"SELECT (id, {number}) IN (SELECT id, id FROM {other}) FROM {source}",
                f"SELECT CASE WHEN id > {number} THEN 'a' END AS c, count(*) FROM {source} GROUP BY ALL",
                f"SELECT id FROM {source} ORDER BY id DESC NULLS LAST LIMIT {number} OFFSET 1",
                f"SELECT id FROM {source} WHERE id = getvariable('a')",
                f"SELECT * FROM query_table({_text(source)})" if " " not in source else f"TABLE {source}",
                f"SELECT t1.* FROM {source} t1 POSITIONAL JOIN (SELECT {number} AS one) t2 WHERE t2.one = 9",
                f"VALUES ({number}, (SELECT count(*) FROM {source}))",
                f"SELECT * FROM k WHERE id > {number}",
                f"SELECT k.id, o.id FROM k JOIN {source} o ON k.x = o.id",
                f"DESCRIBE SELECT id AS a, {name} FROM {source}",
                "SELECT column_name FROM information_schema.columns WHERE table_name IN ('t', 'u')",
                "SELECT table_name, column_count FROM duckdb_tables() WHERE table_name IN ('t', 'u', 'k')",
            ]
        )

    def definition(self) -> str:
        """What changes tables, columns and names in other ways than most."""
        random, table = self._random, self._table()
        name, number = self._name(table, _PLAIN), random.randint(0, 4)
        return random.choice(
            [
                "CREATE TABLE IF NOT EXISTS k (id INTEGER PRIMARY KEY, x BIGINT DEFAULT 7 CHECK (x < 100))",
                f"CREATE OR REPLACE TABLE k (id INTEGER PRIMARY KEY, x BIGINT {random.choice(_KEYS)})",
                "DROP TABLE IF EXISTS k",
                # Of DEFAULT NULL, DuckDB says more in DESCRIBE than of no default.
                f"ALTER TABLE {table} ALTER {name} SET DEFAULT {self._value(name).replace('NULL', '1')}",
                f"ALTER TABLE {table} ALTER {name} DROP DEFAULT",
                f"ALTER TABLE {table} ALTER {name} SET NOT NULL",
                f"ALTER TABLE {table} ALTER {name} DROP NOT NULL",
                f"ALTER TABLE {table} ALTER x TYPE {random.choice(['VARCHAR', 'DOUBLE', 'DECIMAL(20, 1)'])}",
                f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS x BIGINT DEFAULT {number}",
                f"ALTER TABLE IF EXISTS {table} RENAME TO n{number}",
                f"ALTER TABLE IF EXISTS n{number} RENAME TO {table}",
                f"COMMENT ON TABLE {table} IS 'of {number}'",
                f"SET VARIABLE a = {random.choice([str(number), 'NULL', f'(SELECT max(id) FROM {table})'])}",
                "RESET VARIABLE a",
                f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM {table} WHERE id <> {number}",
                f"CREATE OR REPLACE TABLE {table} AS FROM {self._table()} LIMIT 0",
                f"CREATE TABLE IF NOT EXISTS {table} AS SELECT {number} AS id",
                f"INSERT INTO {table} (id) VALUES ({number}); DELETE FROM {table} WHERE id = {number}",
                "CREATE OR REPLACE MACRO m2(a, b := 2) AS a + b",
                f"SELECT m2(id), m2(id, b := {number}) FROM {table}",
                "DEALLOCATE p1",
            ]
        )


_KEYS = ["UNIQUE", "CHECK (x > -2)", "NOT NULL", "DEFAULT 3", ""]


def _text(name: str) -> str:
    return "'" + name.strip('"') + "'"
