"""Random statements that change tables, run in a session of ours and in plain DuckDB, and compared.

`python tests/support/random_changes.py 20000 7` runs 20,000 statements from the seed 7 on, and prints each
difference as few statements that show it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
from lance_engine.errors import LanceError, UnsupportedFeatureError, UnsupportedTypeError
from random_values import Kind, computed, kind, kind_of, near, value

import lance_sql

#: Names of columns that need quotes, or are those of the table and of the source of MERGE.
NAMES = ['"select"', '"C 1"', '"t"', '"Größe"', '"s"', '"v0"']
INDICES = ["BTREE", "BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "LABEL_LIST", "NGRAM", "INVERTED"]
#: Statements between two new tables.
ROUND = 25
#: Queries after a change, which take less time than that.
_READS = 3


class DifferenceError(AssertionError):
    """The two tables, or the outcomes of a statement, differ."""


class Pair:
    """The same tables as datasets and in plain DuckDB. `{folder}` in a statement is a folder for files."""

    def __init__(self, engine: str = "duckdb") -> None:
        self._folder = tempfile.TemporaryDirectory()
        (Path(self._folder.name) / "tables").mkdir()
        self._ours = lance_sql.connect(Path(self._folder.name) / "tables", engine=engine)
        self._reading = lance_sql.connect(Path(self._folder.name) / "tables")
        self._plain = duckdb.connect()
        for connection in (self._plain, self._reading):
            connection.execute("SET TimeZone = 'UTC'")
        if engine == "duckdb":
            self._ours.execute("SET TimeZone = 'UTC'")
        #: whether both have the same tables, as far as is known
        self.is_sound = True

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        self._reading.close()
        self._plain.close()
        self._folder.cleanup()

    def clear(self) -> None:
        """Begin without a table."""
        for connection in (self._ours, self._plain):
            connection.execute("DROP TABLE IF EXISTS t")

    def run(self, statement: str) -> str:
        """What came of the statement: "run", "failed" or "refused"; DifferenceError if both disagree."""
        text = statement.replace("{folder}", self._folder.name)
        if text.startswith("ours: "):  # what changes no rows
            return self._run_by_us(text.removeprefix("ours: "))
        if text.startswith("SELECT"):
            return self._read(text)
        if text.startswith("COPY ("):  # a file for both
            return "run" if self._run_plain(text)[0] is None else "failed"
        (ours, our_rows), (plain, plain_rows) = self._run_ours(text), self._run_plain(text)
        if isinstance(ours, UnsupportedFeatureError | UnsupportedTypeError) and ours.remedy and plain is None:
            raise RefusedError(str(ours))
        if (ours is None) != (plain is None):
            raise DifferenceError(f"ours: {ours or 'run'}\nplain: {plain or 'run'}")
        if " RETURNING " in text and our_rows != plain_rows:
            raise DifferenceError(f"ours returns: {our_rows}\nplain returns: {plain_rows}")
        if ours is not None and text.startswith("CREATE OR REPLACE TABLE t ("):
            return "failed"  # there is no table
        if not self.columns():
            raise RefusedError("A type without random values")
        # Other statements cannot change columns; if one does, the next of these shows it.
        self._compare(with_columns=text.startswith(("CREATE", "ALTER", "COPY")))
        return "run" if ours is None else "failed"

    def columns(self) -> list[tuple[str, Kind]]:
        """The columns of the table as they are written; none if one has a type without random values."""
        table = self._plain.table("t")
        kinds = [kind_of(one) for one in table.types]
        names = [name if re.fullmatch(r"id|[acr]\d+", name) else f'"{name}"' for name in table.columns]
        return [] if None in kinds else list(zip(names, kinds, strict=True))

    def _run_by_us(self, text: str) -> str:
        error, _ = self._run_ours(text)
        self._compare(with_columns=False)
        return "run" if error is None else "failed"

    def _read(self, text: str) -> str:
        """Rows that a condition selects, with indices or without."""
        plain, expected = self._run_plain(text)
        if plain is not None:
            return "failed"
        try:
            found = _sorted(self._reading.execute(text).fetchall())
        except LanceError as error:
            raise DifferenceError(f"ours: {error}\nplain: {expected}") from error
        if found != expected:
            raise DifferenceError(f"ours: {found[:8]}\nplain: {expected[:8]}")
        return "run"

    def _run_ours(self, text: str) -> tuple[Exception | None, list[str]]:
        try:
            return None, _sorted(self._ours.execute(text).fetchall())
        except LanceError as error:
            return error, []
        except Exception as error:
            raise DifferenceError(f"ours: {error!r}") from error

    def _run_plain(self, text: str) -> tuple[Exception | None, list[str]]:
        try:
            return None, _sorted(self._plain.execute(text).fetchall())
        except duckdb.Error as error:
            return error, []
        except UnicodeDecodeError:
            raise RefusedError("DuckDB returns a text that is not UTF-8") from None

    def _compare(self, *, with_columns: bool) -> None:
        plain = _rows(self._plain)
        try:
            ours = _rows(self._reading)
            if with_columns:
                columns = [_columns(connection) for connection in (self._reading, self._plain)]
                if columns[0] != columns[1]:
                    raise DifferenceError(f"columns of ours: {columns[0]}\nof plain: {columns[1]}")
        except LanceError as error:
            raise DifferenceError(f"ours can no longer be read: {error}") from error
        if ours != plain:
            wrong = [(one, other) for one, other in zip(ours, plain, strict=False) if one != other]
            shown = wrong[0] if wrong else (f"{len(ours)} rows", f"{len(plain)} rows")
            raise DifferenceError(f"ours: {shown[0]}\nplain: {shown[1]}")


class RefusedError(Exception):
    """Ours refuses a statement, and says what to do instead."""


def _rows(connection: Any) -> list[str]:
    """The rows of the table, each value as the engine writes it."""
    return _sorted(connection.execute("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM t").fetchall())


def _columns(connection: Any) -> list[tuple[Any, ...]]:
    """Names, types and whether there may be nulls."""
    return [row[:3] for row in connection.execute("DESCRIBE t").fetchall()]


def _sorted(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


class Statements:
    """Random statements that change the table t, whose rows have distinct ids."""

    def __init__(self, seed: int, engine: str = "duckdb") -> None:
        self._random = Random(seed)
        self._engine = engine
        self._ids = 0
        self.columns: list[tuple[str, Kind]] = []
        self._added = 0
        #: DuckDB casts deleted rows too when a column gets another type
        self._has_deleted = False

    def create(self) -> str:
        kinds = [
            kind(self._random, self._random.choice([2, 2, 3])) for _ in range(self._random.randint(1, 4))
        ]
        names = [f"c{number}" for number in range(len(kinds))]
        if self._random.random() < 0.3:
            names = self._random.sample(NAMES, len(kinds))
        self.columns = [("id", Kind("INTEGER")), *zip(names, kinds, strict=True)]
        columns = [f"{name} {one.name}{self._constraint(one)}" for name, one in self.columns[1:]]
        return f"CREATE OR REPLACE TABLE t (id INTEGER, {', '.join(columns)})"

    def _constraint(self, column: Kind) -> str:
        random = self._random
        default = f" DEFAULT {value(random, column)}" if random.random() < 0.1 else ""
        return default + random.choice([" NOT NULL", *[""] * 11])

    def next(self) -> list[str]:
        """A statement, after others that it needs."""
        kinds = [self.insert, self.insert, self.update, self.update, self.delete, self.merge, self.merge]
        kinds += [self.alter, self.index]
        if self._engine == "duckdb":
            kinds += [self.insert_query, self.insert_query, self.copy, self.create_as]
        change = self._random.choice(kinds)
        if change in (self.alter, self.create_as):  # whose columns are known later
            return change()
        return [*change(), *(text for _ in range(_READS) for text in self.read())]

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _some(self, count: int | None = None) -> list[tuple[str, Kind]]:
        others = self.columns[1:]
        return self._random.sample(others, count or self._random.randint(1, len(others)))

    def _condition(self) -> str:
        random = self._random
        return random.choice(
            [f"id % {random.randint(2, 4)} = 0", f"id > {random.randint(0, self._ids)}", "true"]
            + [f"{name} IS NOT NULL" for name, _ in self.columns]
        )

    def index(self) -> list[str]:
        """What finds rows: an index of some kind, or all of them brought up to date."""
        name, _ = self._random.choice(self.columns)
        if self._random.random() < 0.3:
            return ["ours: OPTIMIZE t"]
        kind = self._random.choice(INDICES)
        return [f"ours: CREATE INDEX IF NOT EXISTS i{self._id()} ON t USING {kind} ({name})"]

    def read(self) -> list[str]:
        name, own = self._random.choice(self.columns)
        one, other = value(self._random, own, 0), value(self._random, own, 0)
        tests = [f"{name} = {one}", f"{name} IN ({one}, {other})", f"{name} IS NULL", f"{name} IS NOT NULL"]
        tests += [
            f"{name} >= {one}",
            f"{name} < {one}",
            f"{name} BETWEEN {one} AND {other}",
            f"{name} <> {one}",
        ]
        if own.shape == "list" and not own.inside[0][1].inside:
            item = value(self._random, own.inside[0][1], 0)
            tests += [f"list_contains({name}, {item})", f"list_has_any({name}, [{item}])", f"len({name}) > 1"]
        if own.name == "VARCHAR":
            tests += [f"contains({name}, {one})", f"{name} LIKE {one} || '%'", f"starts_with({name}, {one})"]
        test = self._random.choice(tests)
        return [f"SELECT id, {name}::VARCHAR FROM t WHERE {self._random.choice([test, f'NOT ({test})'])}"]

    def insert(self) -> list[str]:
        chosen = self._some() if self._random.random() < 0.3 else self.columns[1:]
        rows = []
        for _ in range(self._random.randint(1, 3)):
            values = [
                "DEFAULT" if self._random.random() < 0.05 else value(self._random, one) for _, one in chosen
            ]
            rows.append(f"({', '.join([str(self._id()), *values])})")
        names = ", ".join(["id", *(name for name, _ in chosen)])
        return [f"INSERT INTO t ({names}) VALUES {', '.join(rows)}{self._returned()}"]

    def insert_query(self) -> list[str]:
        random = self._random
        chosen = self._some() if random.random() < 0.4 else self.columns[1:]
        number = self._id()
        if random.random() < 0.5:
            values = [f"{computed(random, one, self.columns)} AS {name}" for name, one in chosen]
            rows = (
                f"SELECT id + {10_000 * number} AS id, {', '.join(values)} FROM t WHERE {self._condition()}"
            )
        else:
            values = [f"{value(random, one)} AS {name}" for name, one in chosen]
            rows = f"SELECT {number} AS id, {', '.join(values)}"
        if random.random() < 0.3:
            return [f"INSERT INTO t BY NAME {rows}"]
        names = ", ".join(["id", *(name for name, _ in chosen)])
        return [f"INSERT INTO t ({names}) {rows}{self._returned()}"]

    def update(self) -> list[str]:
        random = self._random
        chosen = self._some(min(2, len(self.columns) - 1))
        # DuckDB deletes and inserts rows whose nested values change.
        self._has_deleted |= any(one.inside for _, one in chosen)
        if random.random() < 0.2:
            sets = ", ".join(f"{name} = s.v{number}" for number, (name, _) in enumerate(chosen))
            return [f"UPDATE t SET {sets} FROM {self._source(chosen)} WHERE t.id = s.k"]
        sets = ", ".join(f"{name} = {computed(random, one, self.columns)}" for name, one in chosen)
        return [f"UPDATE t SET {sets} WHERE {self._condition()}{self._returned()}"]

    def _returned(self) -> str:
        return " RETURNING id" if self._engine == "duckdb" and self._random.random() < 0.15 else ""

    def _source(self, columns: list[tuple[str, Kind]], odd: float = 0) -> str:
        """A row for some ids, with values for columns."""
        random = self._random
        ids = random.sample(range(1, self._ids + 3), min(self._ids, random.randint(1, 3)))
        # One type for each column: whether a row that matches none is cast depends on the plan.
        kinds = [near(random, one) if random.random() < odd else one for _, one in columns]
        rows = [
            ", ".join(
                [f"SELECT {key} AS k"]
                + [f"{value(random, one, 0)} AS v{number}" for number, one in enumerate(kinds)]
            )
            for key in ids or [1]
        ]
        return f"({' UNION ALL '.join(rows)}) s"

    def delete(self) -> list[str]:
        self._has_deleted = True
        if self._random.random() < 0.25:
            return [f"DELETE FROM t USING {self._source([])} WHERE t.id = s.k{self._returned()}"]
        where = f"{self._condition()} AND id % 3 = {self._random.randint(0, 2)}"
        return [f"DELETE FROM t WHERE {where}{self._returned()}"]

    def merge(self) -> list[str]:
        chosen = self._some()
        sets = ", ".join(f"{name} = s.v{number}" for number, (name, _) in enumerate(chosen))
        names = ", ".join(["id", *(name for name, _ in chosen)])
        values = ", ".join(["s.k", *(f"s.v{number}" for number in range(len(chosen)))])
        update, insert = f"UPDATE SET {sets}", f"INSERT ({names}) VALUES ({values})"
        both = f"WHEN MATCHED THEN {update} WHEN NOT MATCHED THEN {insert}"
        # DuckDB also casts what no row needs: values of other types are used by each row.
        odd = 0.2 if self._random.random() < 0.3 else 0
        clauses = self._random.choice(
            [both]
            if odd
            else [
                f"WHEN MATCHED THEN {update}",
                f"WHEN NOT MATCHED THEN {insert}",
                both,
                f"WHEN MATCHED AND s.k % 2 = 0 THEN DELETE WHEN MATCHED THEN {update}",
                f"WHEN MATCHED AND t.id % 3 = 0 THEN {update} WHEN MATCHED AND s.k % 2 = 0 THEN DELETE "
                f"WHEN NOT MATCHED AND s.k % 2 = 1 THEN {insert} WHEN NOT MATCHED THEN DO NOTHING",
                f"{both} WHEN NOT MATCHED BY SOURCE AND t.id % 4 = 0 THEN DELETE",
                f"WHEN NOT MATCHED BY SOURCE AND t.id % 4 = 0 THEN UPDATE SET {chosen[0][0]} = NULL "
                f"WHEN MATCHED THEN {update}",
            ]
        )
        self._ids += 3
        self._has_deleted |= "DELETE" in clauses or any(one.inside for _, one in chosen)
        return [f"MERGE INTO t USING {self._source(chosen, odd)} ON t.id = s.k {clauses}"]

    def copy(self) -> list[str]:
        """A file of rows, some of them of near types, into some columns."""
        random = self._random
        chosen = self._some() if random.random() < 0.3 else self.columns[1:]
        number = self._id()
        rows = " UNION ALL ".join(
            f"SELECT {self._id()} AS id, "
            + ", ".join(f"{value(random, one)} AS {name}" for name, one in chosen)
            for _ in range(random.randint(1, 3))
        )
        # DuckDB may crash when it reports that a nested value of a CSV file cannot be converted.
        nested = any(one.inside for _, one in chosen)
        form = random.choice(["parquet", "json"] if nested else ["csv", "csv", "parquet", "json"])
        path = f"{{folder}}/{number}.{form}"
        written = (
            random.choice(["", ", HEADER false", ", HEADER true", ", DELIMITER ';'"]) if form == "csv" else ""
        )
        read = random.choice(["", f" (FORMAT {form}{written})", f" (FORMAT {form})"])
        names = f"(id, {', '.join(name for name, _ in chosen)})"
        listed = names if len(chosen) < len(self.columns) - 1 or random.random() < 0.5 else ""
        return [f"COPY ({rows}) TO '{path}' (FORMAT {form}{written})", f"COPY t{listed} FROM '{path}'{read}"]

    def alter(self) -> list[str]:
        random = self._random
        name, own = random.choice(self.columns[1:])
        new = near(random, own) if random.random() < 0.7 else kind(random, 1)
        self._added += 1
        default = random.choice(["", f" DEFAULT {value(random, new)}"])
        changes = [
            f"ADD COLUMN a{self._added} {new.name}{default}",
            f"ALTER {name} SET DEFAULT {value(random, own)}",
            f"ALTER {name} DROP DEFAULT",
            f"RENAME {name} TO r{self._added}",
            f"ALTER {name} {random.choice(['SET', 'DROP'])} NOT NULL",
        ]
        if len(self.columns) > 2:
            changes.append(f"DROP COLUMN {name}")
        if not self._has_deleted:
            changes.append(f"ALTER {name} TYPE {new.name}")
            changes.append(f"ALTER {name} TYPE {new.name} USING {computed(random, new, self.columns)}")
        return [f"ALTER TABLE t {random.choice(changes)}"]

    def create_as(self) -> list[str]:
        values = [f"{computed(self._random, one, self.columns)} AS {name}" for name, one in self.columns[1:]]
        return [f"CREATE OR REPLACE TABLE t AS SELECT id, {', '.join(values)} FROM t"]


def run(
    seed: int, count: int, engine: str = "duckdb", *, shown: bool = False
) -> tuple[Counter[str], list[str]]:
    """Run about `count` statements; returns what came of them, and the differences found."""
    outcomes: Counter[str] = Counter()
    found: list[str] = []
    number = seed
    while outcomes.total() < count:
        with Pair(engine) as pair:
            # Connections take as long as some statements: tables follow each other in the same ones.
            while outcomes.total() < count and pair.is_sound:
                for text in _round(pair, number, engine, outcomes):
                    found.append(f"seed {number}: {text}")
                    if shown:
                        print(found[-1], flush=True)
                number += 1
    return outcomes, found


def _round(pair: Pair, seed: int, engine: str, outcomes: Counter[str]) -> list[str]:
    statements = Statements(seed, engine)
    done: list[str] = []
    pair.clear()
    new: list[str] = [statements.create()]
    for _ in range(ROUND):
        for text in new:
            done.append(text)
            try:
                outcome = pair.run(text)
            except RefusedError as refusal:
                outcomes["refused"] += 1
                outcomes[f"refused: {str(refusal)[:60]}"] += 0  # its statement is counted above
                return []
            except DifferenceError as difference:
                pair.is_sound = False
                outcomes["different"] += 1
                return [_shown(reduced(done, engine), difference)]
            except duckdb.FatalException:  # of plain DuckDB: its database is lost
                pair.is_sound = False
                outcomes["ended by DuckDB"] += 1
                return []
            outcomes[outcome] += 1
            if outcome == "failed" and text.startswith("CREATE") and " AS SELECT" not in text:
                return []
            if text.startswith(("ALTER", "CREATE OR REPLACE TABLE t AS")):
                statements.columns = pair.columns()
                if not statements.columns:
                    return []
        new = statements.next()
    return []


def differs(statements: list[str], engine: str) -> DifferenceError | None:
    """The difference after these statements, if it is the last one that shows it."""
    with Pair(engine) as pair:
        for number, text in enumerate(statements):
            try:
                pair.run(text)
            except RefusedError:
                return None
            except DifferenceError as difference:
                return difference if number == len(statements) - 1 else None
    return None


def reduced(statements: list[str], engine: str) -> list[str]:
    """As few of the statements as show the difference; all of them if it takes earlier tables, too."""
    kept = list(statements)
    if differs(kept, engine) is None:
        return ["-- after the tables of earlier seeds, in the same sessions", *kept]
    for number in reversed(range(1, len(statements) - 1)):
        without = [*kept[:number], *kept[number + 1 :]]
        if differs(without, engine) is not None:
            kept = without
    return kept


def _shown(statements: list[str], difference: DifferenceError) -> str:
    return "\n  " + ";\n  ".join(statements) + f"\n{difference}"


if __name__ == "__main__":
    count, first = int(sys.argv[1]), int(sys.argv[2])
    result, _ = run(first, count, *sys.argv[3:], shown=True)
    print(dict(result))
