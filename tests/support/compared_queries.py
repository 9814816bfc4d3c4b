"""Random queries in sessions, and in the same engines over the same rows in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
from random_queries import Queries, Scope, literal, quoted
from random_tables import NESTED, RandomTable, as_tables, write_tables
from reduced_queries import reduced

import lance_sql


class Difference(NamedTuple):
    """A statement for which a session returned something else than the plain engine."""

    seed: int
    engine: str
    statement: str
    ours: Any
    plain: Any

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {self.engine}: {self.statement}"]
        if isinstance(self.ours, Counter) and isinstance(self.plain, Counter):
            lines += [f"  only in the session: {list((self.ours - self.plain).items())[:5]}"]
            lines += [f"  only in the engine: {list((self.plain - self.ours).items())[:5]}"]
        else:
            lines += [f"  session: {str(self.ours)[:300]}", f"  engine: {str(self.plain)[:300]}"]
        return "\n".join(lines)

    def as_test(self) -> str:
        """A test that fails as long as the session returns something else."""
        call = f"different(tmp_path, {self.seed}, {self.engine!r}, [{self.statement!r}])"
        return f"def test_query(tmp_path: Path) -> None:\n    assert not {call}"


def rows(values: list[tuple[Any, ...]]) -> Counter[str]:
    """The rows as a multiset; -0.0 and 0.0 are equal to engines."""
    return Counter(repr(tuple(_plain(value) for value in row)) for row in values)


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

    def __init__(self, tables: list[RandomTable]) -> None:
        self._connection = duckdb.connect()
        for name, table in as_tables(tables).items():
            self._connection.register("rows_", _without_halves(table))
            self._connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM rows_")
            self._connection.unregister("rows_")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(statement).fetchall()
        return found


class PlainDataFusion:
    """DataFusion over record batches in memory."""

    def __init__(self, tables: list[RandomTable]) -> None:
        from datafusion import SessionContext

        self._context = SessionContext()
        for name, table in as_tables(tables).items():
            batches = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
            self._context.register_record_batches(quoted(name), [batches])

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        table = self._context.sql(statement).to_arrow_table()
        return (
            list(zip(*[column.to_pylist() for column in table.columns], strict=True)) or [()] * table.num_rows
        )


PLAIN = {"duckdb": PlainDuckDB, "datafusion": PlainDataFusion}


def outcome(run: Any, statement: str) -> Any:
    """The rows of a statement, or the class of its error."""
    try:
        return rows(run(statement))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # DataFusion's panics are not subclasses of Exception
        return error


class Compared:
    """A session over the tables of a seed, and the engine alone over their rows."""

    def __init__(self, folder: Path, seed: int, engine: str) -> None:
        self.seed, self.engine = seed, engine
        self.tables = write_tables(folder, seed)
        self.plain = PLAIN[engine](self.tables)
        self.session = lance_sql.connect(str(folder), engine=engine)
        # Every second seed reaches the pushdowns that pay for large tables only.
        if seed % 2:
            self.session.sql("SET lance_force_pushdowns = true")
        if seed % 4 > 1:
            self.session.sql("SET lance_verify = true")
        if engine == "duckdb" and seed % 3:
            self.session.sql(f"SET threads = {seed % 3}")
        for table in self.tables:
            # The rows of an older version, which later ones do not change.
            if (seed + len(table.columns)) % 5 == 0:
                dataset = lance_sql.open(folder / f"{table.name}.lance")
                dataset.drop_columns(["s"]).delete("g > 2 OR g IS NULL").compact()
                self.session.register(table.name, dataset)

    def __enter__(self) -> Compared:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def compare(self, statement: str) -> Difference | None:
        """What differs; nothing where the engine alone fails."""
        expected = outcome(self.plain.rows, statement)
        if isinstance(expected, BaseException):
            return None
        found = outcome(lambda text: self.session.sql(text).fetchall(), statement)
        if found == expected and len(statement) % 4 == 0:  # again, with the plan that is kept
            found = outcome(lambda text: self.session.sql(text).fetchall(), statement)
        return None if found == expected else Difference(self.seed, self.engine, statement, found, expected)

    def reduced(self, difference: Difference) -> Difference:
        """The difference for as small a statement as shows one."""
        text = reduced(
            difference.statement, lambda shorter: self.compare(shorter) is not None, dialect=self.engine
        )
        return self.compare(text) or difference

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
            (values,) = self.plain.rows(f"SELECT {items} FROM {row}")
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
        """A condition, its negation and NULL divide the rows; a count is the sum of what it counts."""
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
            found = [int(self.session.sql(text).fetchall()[0][0]) for text in texts]
        except lance_sql.LanceError:
            return None
        true, false, null, every, summed = found
        if true + false + null != every or true != summed:
            return Difference(self.seed, self.engine, texts[0], (true, false, null, summed), every)
        return None


def differences(folder: Path, seed: int, engine: str, statements: int) -> Iterator[Difference]:
    """What differs for the statements of a seed."""
    with Compared(folder, seed, engine) as compared:
        queries = Queries(compared.tables, seed, dialect=engine)
        for _ in range(statements):
            difference = compared.compare(queries.statement())
            if difference is not None:
                yield compared.reduced(difference)
            for difference in (compared.parts(queries), compared.pivot(queries)):
                if difference is not None:
                    yield difference


def different(folder: Path, seed: int, engine: str, statements: Sequence[str]) -> list[Difference]:
    """What differs for these statements over the tables of a seed."""
    with Compared(folder, seed, engine) as compared:
        found = [compared.compare(statement) for statement in statements]
    return [difference for difference in found if difference is not None]
