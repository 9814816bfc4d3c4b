"""Random statements of whole sessions, and the same in plain DuckDB: each has the same outcome in both.

Names are created, replaced, shadowed and dropped; prepared statements, views, macros, cursors and settings
outlive changes of what they use; transactions are committed or given up; older versions keep their rows.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
from lance_engine.errors import LanceError, UnsupportedFeatureError, UnsupportedTypeError
from random_changes import DifferenceError, RefusedError
from random_session_forms import Forms

import lance_sql

#: Statements between two new sessions.
ROUND = 120
#: How statements begin that leave tables and their columns as they are; those of some leave the rows, too.
_READS = ("SELECT", "FROM", "WITH", "SHOW", "SET", "RESET", "PREPARE")
_KEEPS_COLUMNS = (*_READS, "EXECUTE", "INSERT", "UPDATE", "DELETE")
TABLES = ["t", "u", '"T u"', '"select"']
VIEWS = ["v", "w", '"V w"']
COLUMNS = ["id", "x", "s", "d", '"t"', '"Order"']
TYPES = {"id": "INTEGER", "x": "BIGINT", "s": "VARCHAR", "d": "DOUBLE", '"t"': "STRUCT(a INTEGER, s VARCHAR)"}
TYPES['"Order"'] = "DATE"
VALUES = {
    "id": ["0", "1", "2", "3", "7"],
    "x": ["NULL", "0", "-1", "5", "9223372036854775807"],
    "s": ["NULL", "''", "'a'", "'ab'", "'Zoë'"],
    "d": ["NULL", "0.0", "'nan'::DOUBLE", "1.5", "'-infinity'::DOUBLE"],
    '"t"': ["NULL", "{'a': 1, 's': 'q'}", "{'a': NULL, 's': 'r'}"],
    '"Order"': ["NULL", "DATE '2024-02-29'", "DATE '1899-12-31'"],
}
#: Settings that change answers in DuckDB, or only how they are found.
SETTINGS = [
    "SET default_order = 'DESC'",
    "SET default_null_order = 'NULLS_FIRST'",
    "RESET default_order",
    "SET integer_division = true",
    "RESET integer_division",
    "SET threads = 1",
    "SET threads = 3",
    "SET preserve_insertion_order = false",
]
OURS = ["SET lance_force_pushdowns = true", "RESET lance_force_pushdowns", "SET lance_verify = true"]
OURS += ["RESET lance_verify"]


#: Documented refusals: where DuckDB would use the temporary table, statements of ours would not; and MERGE.
_REFUSALS = ("with the same name would hide it", "Several source rows match the same row")


class Sessions:
    """A session of ours and plain DuckDB, with two cursors each. ``1: text`` runs in the second cursor."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "tables"
        self._path.mkdir()
        ours, plain = lance_sql.connect(self._path), duckdb.connect()
        self._ours = [ours, ours.cursor()]
        self._plain = [plain, plain.cursor()]
        #: the rows of versions of the table t, by number
        self._versions: dict[int, list[str]] = {}

    def __enter__(self) -> Sessions:
        return self

    def __exit__(self, *_: object) -> None:
        for one in reversed([*self._ours, *self._plain]):
            one.close()
        self._folder.cleanup()

    def run(self, statement: str) -> str:
        """What came of it: "run" or "failed"; DifferenceError if both disagree."""
        place, text = (1, statement[3:]) if statement.startswith("1: ") else (0, statement)
        if text in OURS:
            self._ours[place].execute(text)
            return "run"
        if text == "AN OLD VERSION":
            return self._old_version()
        ours, our_rows = self._outcome(self._ours[place], text)
        plain, plain_rows = self._outcome(self._plain[place], text)
        refusal = isinstance(ours, UnsupportedFeatureError | UnsupportedTypeError) or any(
            known in str(ours) for known in _REFUSALS
        )
        if refusal and plain is None:
            raise RefusedError(str(ours))
        if ours is not None and not isinstance(ours, LanceError):
            raise DifferenceError(f"ours: {ours!r}")
        if (ours is None) != (plain is None):
            raise DifferenceError(f"ours: {ours or 'run'}\nplain: {plain or 'run'}")
        if plain is None and our_rows != plain_rows:
            raise DifferenceError(f"ours: {our_rows[:8]}\nplain: {plain_rows[:8]}")
        if not text.startswith(_READS):
            self._note_version()
        return "run" if plain is None else "failed"

    def _outcome(self, connection: Any, text: str) -> tuple[Exception | None, list[str]]:
        try:
            result = connection.execute(text)
            rows = sorted(map(repr, result.fetchall()))
            # A name in two schemas of the engine is listed once here.
            rows = sorted(set(rows)) if text == "SHOW TABLES" else rows
            ours = isinstance(result, lance_sql.QueryResult)
            names = result.columns if ours else [column[0] for column in result.description or ()]
            if text.startswith("EXECUTE"):  # relations of DuckDB call the second of two "id" "id_1"
                return None, rows
            if text.startswith("UPDATE") and " FROM " in text:  # DuckDB counts a row as often as it matches
                return None, sorted(set(rows)) if "RETURNING" in text else []
            # Statements without rows have names of columns, too, which nobody reads.
            return None, [str(names), *rows] if rows else rows
        except Exception as error:
            return error, []

    def columns(self) -> dict[str, list[str]]:
        """The tables and views, with the columns that statements know."""
        found: dict[str, list[str]] = {}
        text = "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
        for table, column in self._plain[0].execute(text).fetchall():
            name = next((one for one in [*TABLES, *VIEWS] if one.strip('"') == table), None)
            known = next((one for one in COLUMNS if one.strip('"') == column), None)
            if name is not None and known is not None:
                found.setdefault(name, []).append(known)
        return found

    def _note_version(self) -> None:
        path = self._path / "t.lance"
        if path.exists():
            dataset = lance_sql.open(path)
            if dataset.version not in self._versions:
                # the newest rows as our own reader has them: they must not change later
                self._versions[dataset.version] = sorted(map(repr, dataset.scan().to_table().to_pylist()))
        else:
            self._versions.clear()

    def _old_version(self) -> str:
        for version, rows in self._versions.items():
            dataset = lance_sql.open(self._path / "t.lance", version=version)
            found = sorted(map(repr, dataset.scan().to_table().to_pylist()))
            if found != rows:
                raise DifferenceError(f"version {version} was {rows[:5]}\nand is {found[:5]}")
        return "run"


class Statements:
    """Random statements; those after a failed one of a transaction roll it back."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        #: tables and views, with their columns
        self.known: dict[str, list[str]] = {}
        self.in_transaction = False
        self._forms = Forms(self._random, self._table, self._test, self._name, self._any)

    def _any(self, name: str) -> str:
        return self._random.choice(VALUES[name])

    def first(self) -> list[str]:
        tables = [f"CREATE TABLE {name} ({self._columns()})" for name in TABLES[:2]]
        return [*tables, "CREATE TABLE k (id INTEGER PRIMARY KEY, x BIGINT DEFAULT 7 CHECK (x < 100))"]

    def next(self) -> str:
        random = self._random
        common = [self._change] * 4 + [self._query] * 5 + [self._execute] * 2 + [self._show]
        common += [self._forms.change] * 3 + [self._forms.query] * 3 + [self._forms.definition]
        if self.in_transaction:
            common += [self._end] * 2 + [self._replace] * 2 + [self._drop, self._alter]
            return random.choice(common)()
        others = [self._view, self._macro, self._prepare, self._prepare, self._temporary, self._replace]
        others += [self._drop, self._alter, self._setting, self._begin]
        statement = random.choice([*common, *others, lambda: "AN OLD VERSION"])()
        seconds = statement.startswith(("SELECT", "FROM", "WITH", "INSERT", "UPDATE", "DELETE"))
        return f"1: {statement}" if seconds and random.random() < 0.15 else statement

    def _columns(self) -> str:
        return ", ".join(f"{name} {TYPES[name]}" for name in ["id", *self._some(COLUMNS[1:])])

    def _some(self, names: list[str]) -> list[str]:
        return self._random.sample(names, self._random.randint(1, len(names)))

    def _table(self) -> str:
        known = [name for name in TABLES if name in self.known]
        return self._random.choice(known * 9 + TABLES)

    def _source(self) -> str:
        if self.known and self._random.random() < 0.9:
            return self._random.choice(list(self.known))
        return self._random.choice([*TABLES, *VIEWS, "m(1)"])

    def _name(self, source: str, allowed: list[str] = COLUMNS) -> str:
        """A column, most often one that the table has."""
        known = [name for name in self.known.get(source, []) if name in allowed]
        return self._random.choice(known if known and self._random.random() < 0.95 else allowed)

    def _test(self, source: str) -> str:
        random = self._random
        name = self._name(source, COLUMNS[:4])
        value = random.choice(VALUES[name][1:])
        return random.choice(
            [
                f"{name} = {value}",
                f"{name} > {value}",
                f"{name} IS NULL",
                f"id % 2 = {random.randint(0, 1)}",
                f"{name} IN ({value}, {random.choice(VALUES[name])})",
                f"id IN (SELECT id FROM {self._source()})",
                "true",
            ]
        )

    def _change(self) -> str:
        random, table = self._random, self._table()
        match random.randint(0, 5):
            case 0 | 1 | 2:
                names = list(dict.fromkeys(["id", *(self._name(table) for _ in range(2))]))
                rows = [f"({', '.join(random.choice(VALUES[name]) for name in names)})" for _ in range(3)]
                return f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join(rows)}"
            case 3:
                name = self._name(table)
                value = random.choice([*VALUES[name], "id" if name in ("x", "d") else "NULL"])
                return f"UPDATE {table} SET {name} = {value} WHERE {self._test(table)}"
            case 4:
                return f"DELETE FROM {table} WHERE {self._test(table)} AND id > 0"
        return f"INSERT INTO {table} BY NAME SELECT id + 1 AS id, x FROM {self._source()} LIMIT 20"

    def _query(self) -> str:
        random, source = self._random, self._source()
        name, other = self._name(source), self._name(source, COLUMNS[:4])
        tests = self._test(source)
        direction = random.choice(["", "DESC", "ASC NULLS FIRST"])
        return random.choice(
            [
                f"SELECT * FROM {source} WHERE {tests}",
                f"SELECT count(*), min({other}), max(id) FROM {source} WHERE {tests}",
                f"SELECT {other}, count(*) FROM {source} GROUP BY ALL HAVING count(*) > 1",
                f"SELECT {name}, m0({other}) FROM {source} a WHERE {tests}",
                f"SELECT a.id, b.{other} FROM {source} a JOIN {self._source()} b ON a.id = b.id",
                f"SELECT a.id FROM {source} a SEMI JOIN {self._table()} b USING (id)",
                f"WITH {random.choice(['c', 't', 'v'])} AS (SELECT id, {other} FROM {source}) "
                f"SELECT * FROM t WHERE id > 0",
                f"SELECT DISTINCT id FROM {source} ORDER BY id {direction} LIMIT 2",
                f"SELECT id, count(*) OVER (PARTITION BY {other}) AS c FROM {source} QUALIFY c > 1",
                f"SELECT id, {other}, count(*) FROM {source} GROUP BY GROUPING SETS ((id), ({other}), ())",
                f"SELECT t.* FROM {source} t",
                f"SELECT (SELECT count(*) FROM {self._table()} i WHERE i.id = o.id) AS n FROM {source} o",
                f"SELECT o.id, l.n FROM {source} o, LATERAL (SELECT o.id + 1 AS n) l",
                f"SELECT * FROM (PIVOT (SELECT id, id % 2 AS k FROM {source}) ON k IN (0, 1) USING count(*))",
                f"SELECT t.t, {name} FROM {source}",
                f"SELECT id FROM {source} EXCEPT SELECT id FROM {self._table()}",
                f"SELECT COLUMNS(*) FROM {source} ORDER BY ALL LIMIT 3",
            ]
        )

    def _show(self) -> str:
        return "SHOW TABLES"

    def _prepare(self) -> str:
        if self._random.random() < 0.4:
            source = self._source()
            name = self._name(source, COLUMNS[:4])
            return self._random.choice(
                [
                    f"PREPARE q AS SELECT id, {name} FROM {source} WHERE {name} >= $1 OR id = $2",
                    f"PREPARE q AS UPDATE {self._table()} SET id = id + $2 WHERE id = $1 OR id = 3",
                    f"PREPARE q AS DELETE FROM {self._table()} WHERE id IN ($1, $2)",
                    f"PREPARE q AS INSERT INTO {self._table()} (id) VALUES ($1), ($2 + 10)",
                ]
            )
        return f"PREPARE p{self._random.randint(0, 2)} AS {self._query()}"

    def _execute(self) -> str:
        if self._random.random() < 0.4:
            values = ["0", "2", "7", "NULL", "1.5", "'3'"]
            return f"EXECUTE q({self._random.choice(values)}, {self._random.choice(values[:3])})"
        return f"EXECUTE p{self._random.randint(0, 2)}"

    def _view(self) -> str:
        kind = self._random.choice(["OR REPLACE VIEW", "VIEW", "OR REPLACE TEMP VIEW", "TEMP VIEW"])
        name, table = self._random.choice(VIEWS), self._table()
        return f"CREATE {kind} {name} AS SELECT * FROM {table} WHERE {self._test(table)}"

    def _macro(self) -> str:
        return self._random.choice(
            [
                f"CREATE OR REPLACE MACRO m0(a) AS {self._random.choice(['a', 'coalesce(a, NULL)', '1'])}",
                f"CREATE OR REPLACE MACRO m(a) AS TABLE SELECT * FROM {self._table()} WHERE id > a",
            ]
        )

    def _temporary(self) -> str:
        """A table of the engine; under the name of a dataset, it ends the session with a refusal."""
        names = [*TABLES, *VIEWS]
        if self._random.random() < 0.9:
            names = [name for name in names if name not in self.known] or VIEWS
        name = self._random.choice(names)
        return f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT id, x FROM {self._table()}"

    def _replace(self) -> str:
        if self._random.random() < 0.4:
            kind = self._random.choice(["OR REPLACE TABLE", "TABLE"])
            return f"CREATE {kind} {self._table()} AS SELECT * FROM {self._source()}"
        kind = self._random.choice(["TABLE IF NOT EXISTS", "OR REPLACE TABLE", "TABLE"])
        return f"CREATE {kind} {self._table()} ({self._columns()})"

    def _drop(self) -> str:
        kind, names = self._random.choice([("TABLE", TABLES[2:]), ("VIEW", VIEWS), ("TABLE", TABLES)])
        return f"DROP {kind} {self._random.choice(['', 'IF EXISTS '])}{self._random.choice(names)}"

    def _alter(self) -> str:
        table = self._table()
        name = self._random.choice([*COLUMNS[1:], self._name(table)])
        return f"ALTER TABLE {table} " + self._random.choice(
            [
                f"ADD COLUMN {name} {TYPES[name]}",
                f"DROP COLUMN {name}",
                f"RENAME {name} TO {self._other(name)}",
            ]
        )

    def _other(self, name: str) -> str:
        return self._random.choice([one for one in COLUMNS[1:] if TYPES[one] == TYPES[name]] + ["renamed"])

    def _setting(self) -> str:
        return self._random.choice(SETTINGS + OURS * 2)

    def _begin(self) -> str:
        self.in_transaction = True
        return "BEGIN"

    def _end(self) -> str:
        self.in_transaction = False
        return self._random.choice(["COMMIT", "COMMIT", "ROLLBACK"])


def round_of(seed: int, count: int = ROUND) -> tuple[Counter[str], str | None]:
    """What came of the statements of a seed, and those that show a difference."""
    outcomes: Counter[str] = Counter()
    statements = Statements(seed)
    done: list[str] = []
    with Sessions() as sessions:
        for number in range(count):
            if not done or not done[-1].removeprefix("1: ").startswith(_KEEPS_COLUMNS):
                statements.known = sessions.columns()
            for text in statements.first() if number == 0 else [statements.next()]:
                done.append(text)
                try:
                    outcome = sessions.run(text)
                except RefusedError as error:
                    outcomes["refused"] += 1
                    outcomes[f"refused: {str(error)[:60]}"] += 0
                    return outcomes, None
                except DifferenceError as difference:
                    outcomes["different"] += 1
                    kept = reduced(done)
                    shown = ";\n  ".join(kept)
                    test = f"def test_session() -> None:\n    assert differs({kept!r}) is None"
                    return outcomes, f"seed {seed}:\n  {shown}\n{differs(kept) or difference}\n{test}"
                outcomes[outcome] += 1
                if outcome == "failed" and statements.in_transaction:
                    # DuckDB gives some transactions up after an error, and not others.
                    statements.in_transaction = False
                    done.append("ROLLBACK")
                    sessions._outcome(sessions._ours[0], "ROLLBACK")
                    sessions._outcome(sessions._plain[0], "ROLLBACK")
    return outcomes, None


def differs(statements: list[str]) -> DifferenceError | None:
    """The difference that the last of these statements shows."""
    with Sessions() as sessions:
        for number, text in enumerate(statements):
            try:
                if text == "ROLLBACK":
                    sessions._outcome(sessions._ours[0], text)
                    sessions._outcome(sessions._plain[0], text)
                else:
                    sessions.run(text)
            except RefusedError:
                return None
            except DifferenceError as difference:
                return difference if number == len(statements) - 1 else None
    return None


def reduced(statements: list[str]) -> list[str]:
    """As few of the statements as show a difference."""
    kept = list(statements)
    size = max(1, len(kept) // 2)
    while size:
        for begin in reversed(range(0, len(kept) - 1, size)):
            without = [*kept[:begin], *kept[min(begin + size, len(kept) - 1) :]]
            if len(without) < len(kept) and differs(without) is not None:
                kept = without
        size //= 2
    return kept
