"""Random queries in sessions, and in the same engines over the same rows in memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
from random_queries import Queries, Scope, literal, quoted
from random_tables import NESTED, RandomTable, change, write_tables
from reduced_queries import reduced

import lance_sql

#: Statements until a table changes.
_BETWEEN_CHANGES: Final = 25
#: How often a statement with parameters runs.
_EXECUTIONS: Final = 6


class Difference(NamedTuple):
    """A statement for which a session returned something else than the plain engine."""

    seed: int
    engine: str
    #: the changes of tables before it
    changes: int
    statement: str
    parameters: Sequence[Any]
    ours: Any
    plain: Any

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {self.engine}: {self.statement} {self.parameters or ''}"]
        if isinstance(self.ours, list) and isinstance(self.plain, list):
            ours, plain = rows(self.ours), rows(self.plain)
            lines += [f"  only in the session: {list((ours - plain).items())[:5]}"]
            lines += [f"  only in the engine: {list((plain - ours).items())[:5]}"]
        else:
            lines += [f"  session: {str(self.ours)[:300]}", f"  engine: {str(self.plain)[:300]}"]
        return "\n".join(lines)

    def as_test(self) -> str:
        """A test that fails as long as the session returns something else."""
        case = [(self.statement, list(self.parameters))]
        call = f"different(tmp_path, {self.seed}, {self.engine!r}, {case!r}, {self.changes})"
        return f"def test_query(tmp_path: Path) -> None:\n    assert not {call}"


def rows(values: list[tuple[Any, ...]]) -> Counter[str]:
    """The rows as a multiset; -0.0 and 0.0 are equal to engines."""
    return Counter(repr(tuple(_plain(value) for value in row)) for row in values)


def same_rows(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    """Whether these are the same rows, in any order."""
    if len(found) != len(expected):
        return False
    # Most often they come in the same order. Texts tell apart values of other types that are equal.
    return repr(found) == repr(expected) or rows(found) == rows(expected)


def _plain(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def _without_halves(table: pa.Table) -> pa.Table:
    """The rows with the type that DuckDB has for numbers of 16 bits."""
    fields = [
        field.with_type(pa.float32()) if field.type == pa.float16() else field for field in table.schema
    ]
    return table.cast(pa.schema(fields))


class PlainDuckDB:
    """DuckDB over tables of its own."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()

    def put(self, table: RandomTable) -> None:
        """Create or replace a table."""
        self._connection.register("rows_", _without_halves(table.rows))
        self._connection.execute(f"CREATE OR REPLACE TABLE {quoted(table.name)} AS SELECT * FROM rows_")
        self._connection.unregister("rows_")

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        given = parameters or None
        found: list[tuple[Any, ...]] = self._connection.execute(statement, given).fetchall()
        return found


class PlainDataFusion:
    """DataFusion over record batches in memory."""

    def __init__(self) -> None:
        from datafusion import SessionContext

        self._context = SessionContext()

    def put(self, table: RandomTable) -> None:
        """Create or replace a table."""
        rows = table.rows
        batches = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
        self._context.deregister_table(quoted(table.name))
        self._context.register_record_batches(quoted(table.name), [batches])

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        values = {str(number): value for number, value in enumerate(parameters, 1)}
        table = self._context.sql(statement, param_values=values or None).to_arrow_table()
        return (
            list(zip(*[column.to_pylist() for column in table.columns], strict=True)) or [()] * table.num_rows
        )


PLAIN = {"duckdb": PlainDuckDB, "datafusion": PlainDataFusion}


def outcome(run: Any, statement: str, parameters: Sequence[Any] = ()) -> Any:
    """The rows of a statement, or its error."""
    try:
        return run(statement, parameters)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # DataFusion's panics are not subclasses of Exception
        return error


class _Installed:
    """The tables of a folder in somebody's own connection, where other names for them are ambiguous."""

    def __init__(self, folder: Path) -> None:
        import lance_sql.duckdb

        self._connection = duckdb.connect()
        lance_sql.duckdb.install(self._connection, folder)

    def sql(self, text: str, parameters: Sequence[Any] | None = None) -> Any:
        return self._connection.execute(text, parameters)

    def close(self) -> None:
        self._connection.close()


class Compared:
    """Two sessions over the tables of a seed, and the engine alone over their rows.

    One of the sessions forces the pushdowns that pay for large tables only.
    """

    def __init__(self, folder: Path, seed: int, engine: str, counted: Counter[str] | None = None) -> None:
        self.seed, self.engine = seed, engine
        #: has the number of statements that our sessions ran
        self.counted = Counter[str]() if counted is None else counted
        self.changes = 0
        self._folder = folder
        self._random = random.Random(f"changes {seed}")
        self.tables = write_tables(folder, seed)
        self._plain = PLAIN[engine]()
        for table in self.tables:
            self._plain.put(table)
        self._sessions = [self._connected(is_forced) for is_forced in (False, True)]
        #: names of tables of which the sessions know an older version, which later ones do not change
        self._old: set[str] = set()
        for table in self.tables:
            if (seed + len(table.columns)) % 5 == 0 and not self._is_installed:
                self._old.add(table.name)
                dataset = lance_sql.open(folder / f"{table.name}.lance")
                dataset.drop_columns(["s"]).delete("g > 2 OR g IS NULL").compact()
                for session in self._sessions:
                    session.register(table.name, dataset)

    def _connected(self, is_forced: bool) -> Any:
        if self._is_installed and not is_forced:
            return _Installed(self._folder)
        session = lance_sql.connect(str(self._folder), engine=self.engine)
        if is_forced:
            session.sql("SET lance_force_pushdowns = true")
        if self.seed % 8 == 2 + is_forced:  # each query runs twice
            session.sql("SET lance_verify = true")
        if self.engine == "duckdb" and self.seed % 5:
            session.sql(f"SET threads = {1 + self.seed // 5 % 2}")
        return session

    def __enter__(self) -> Compared:
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._sessions:
            session.close()

    @property
    def _is_installed(self) -> bool:
        return self.seed % 6 == 4 and self.engine == "duckdb"

    @property
    def is_large(self) -> bool:
        """Whether statements over the tables take long."""
        return sum(table.rows.num_rows for table in self.tables) > 3000

    def change(self) -> None:
        """Change the rows of a table, or how they are stored."""
        self.changes += 1
        place = self._random.randrange(len(self.tables))
        if self.tables[place].name not in self._old:
            self.tables[place] = change(self._folder, self.tables[place], self._random)
            self._plain.put(self.tables[place])

    def _found(self, session: Any, text: str, parameters: Sequence[Any] = ()) -> Any:
        self.counted["statements"] += 1
        return outcome(lambda *given: session.sql(*given).fetchall(), text, parameters or None)

    def compare(self, statement: str, parameters: Sequence[Any] = ()) -> Difference | None:
        """What differs in any session; nothing where the engine alone fails."""
        expected = outcome(self._plain.rows, statement, parameters)
        if isinstance(expected, BaseException):
            return None
        for session in self._sessions:
            found = self._found(session, statement, parameters)
            if isinstance(found, BaseException) or not same_rows(found, expected):
                return Difference(
                    self.seed, self.engine, self.changes, statement, parameters, found, expected
                )
        if parameters:
            return None
        # Again, with the plan that is kept, or within another query.
        within = f"SELECT * FROM ({statement}) AS q"
        text = statement if len(statement) % 2 else within
        found = self._found(self._sessions[len(statement) // 2 % 2], text)
        if isinstance(found, BaseException) or not same_rows(found, expected):
            expected = outcome(self._plain.rows, text)
            if not isinstance(expected, BaseException) and (
                isinstance(found, BaseException) or not same_rows(found, expected)
            ):
                return Difference(self.seed, self.engine, self.changes, text, (), found, expected)
        return None

    def reduced(self, difference: Difference) -> Difference:
        """The difference for as small a statement as shows one."""
        if difference.parameters:
            return difference
        text = reduced(
            difference.statement, lambda shorter: self.compare(shorter) is not None, dialect=self.engine
        )
        return self.compare(text) or difference

    def prepared(self, queries: Queries) -> Difference | None:
        """A statement with parameters, which is planned once, and runs with several values."""
        text, makes = queries.with_parameters()
        chosen = queries.chosen
        for _ in range(_EXECUTIONS if makes else 1):
            values = [make(chosen) if chosen.random() < 0.95 else None for make in makes]
            difference = self.compare(text, values)
            if difference is not None:
                return difference
        return None

    def pivot(self, queries: Queries) -> Difference | None:
        """Conditions that hold for a chosen row find it (PQS), and what else the engine finds."""
        chosen = queries.chosen
        table = chosen.choice(self.tables)
        if not table.rows.num_rows:
            return None
        scope = Scope("p", table.columns)
        conditions = [queries.condition([scope]) for _ in range(chosen.randint(1, 3))]
        columns = [column for column in table.columns if column.kind.group not in NESTED]
        columns = chosen.sample(columns, chosen.randint(0, 2))
        place = chosen.randrange(table.rows.num_rows)
        items = ", ".join([*conditions, *map(scope.name, columns)])
        row = f"(SELECT * FROM {quoted(table.name)} LIMIT 1 OFFSET {place}) p"
        try:
            (values,) = self._plain.rows(f"SELECT {items} FROM {row}")
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return None
        held = {True: "({})", False: "NOT ({})", None: "({}) IS NULL"}
        tests = [held[value].format(one) for one, value in zip(conditions, values, strict=False)]
        for column, value in zip(columns, values[len(conditions) :], strict=True):
            test = "{} IS NULL" if value is None else f"{{}} = {literal(value, queries.is_duckdb)}"
            tests.append(test.format(scope.name(column)))
        chosen.shuffle(tests)
        return self.compare(f"SELECT p.k, p.s FROM {quoted(table.name)} p WHERE {' AND '.join(tests)}")

    def parts(self, queries: Queries) -> Difference | None:
        """A condition, its negation and NULL divide the rows (TLP); a count is a sum of its rows (NoREC)."""
        session = queries.chosen.choice(self._sessions)
        source, scopes = queries._from(1)
        condition = queries.condition(scopes)
        texts = [
            f"SELECT count(*) FROM {source} WHERE {test}"
            for test in (condition, f"NOT ({condition})", f"({condition}) IS NULL")
        ]
        texts += [
            f"SELECT count(*) FROM {source}",
            f"SELECT coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) FROM {source}",
        ]
        try:
            found = []
            for text in texts:
                self.counted["statements"] += 1
                found.append(int(session.sql(text).fetchall()[0][0]))
        except lance_sql.LanceError:
            return None
        true, false, null, every, summed = found
        if true + false + null != every or true != summed:
            parts = (true, false, null, summed)
            return Difference(self.seed, self.engine, self.changes, texts[0], (), parts, every)
        return None


def differences(
    folder: Path, seed: int, engine: str, statements: int, counted: Counter[str] | None = None
) -> Iterator[Difference]:
    """What differs for the statements of a seed; `counted` has those that our sessions ran."""
    with Compared(folder, seed, engine, counted) as compared:
        queries = Queries(compared.tables, seed, dialect=engine)
        number = 0
        while compared.counted["statements"] < statements / (6 if compared.is_large else 1):
            number += 1
            if number % _BETWEEN_CHANGES == 0:
                compared.change()
            difference = compared.compare(queries.statement())
            if difference is not None:
                yield compared.reduced(difference)
            for difference in (
                compared.parts(queries),
                compared.pivot(queries),
                compared.prepared(queries),
            ):
                if difference is not None:
                    yield compared.reduced(difference)


def different(
    folder: Path, seed: int, engine: str, cases: Sequence[tuple[str, Sequence[Any]]], changes: int = 0
) -> list[Difference]:
    """What differs for these statements over the tables of a seed after so many changes."""
    with Compared(folder, seed, engine) as compared:
        for _ in range(changes):
            compared.change()
        found = [compared.compare(statement, parameters) for statement, parameters in cases]
    return [difference for difference in found if difference is not None]
