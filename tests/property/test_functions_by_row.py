"""Functions that another engine computes return the value of each row, whatever the number of rows."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from filter_calls import calls, conditions, knowing
from lance_engine.errors import InvalidFilterError, LanceError, SchemaMismatchError

import lance_sql
from lance_sql.catalog import functions
from lance_sql.catalog.values import compile_value
from lance_sql.types.row_numbers import by_number, number_name

#: DataFusion computes in batches of 8,192 rows, and gives more of them to several threads.
SIZES = (8_191, 8_192, 8_193, 20_000)
WORDS = ["foo", "Bar baz", "", "héllo", "o-o", "2024-05-06 07:08:09", "12", "x,y"]


def random_table(rows: int, seed: int) -> pa.Table:
    """Rows with few equal neighbours, and nulls in every column but `n`."""
    chance = np.random.default_rng(seed)

    def held(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=chance.random(rows) < 0.1)

    small = chance.integers(-20, 20, rows)
    texts = [f"{WORDS[place]}{'' if place > 4 else place}" for place in chance.integers(0, len(WORDS), rows)]
    lists = pa.ListArray.from_arrays(
        pa.array(np.append(0, np.cumsum(small % 3)), pa.int32()),
        pa.array(chance.integers(0, 4, int((small % 3).sum()))),
        mask=pa.array(chance.random(rows) < 0.1),
    )
    moments = chance.integers(0, 1 << 50, rows).astype("datetime64[us]")
    return pa.table(
        {
            "n": pa.array(range(rows)),
            "i": held(small, pa.int64()),
            "j": held(chance.integers(1, 9, rows), pa.int32()),
            "u": held(chance.integers(0, 200, rows), pa.uint8()),
            "f": held(chance.normal(0, 5, rows), pa.float64()),
            "g": held(chance.integers(-8, 8, rows) / 4, pa.float64()),
            "h": held(chance.integers(-4, 4, rows) / 4, pa.float32()),
            "t": held(texts, pa.string()),
            "tj": held(chance.choice(["12", "-", "2024-01-02", "a-b"], rows), pa.string()),
            "b": held([text.encode() for text in texts], pa.binary()),
            "x": held(small % 2 == 0, pa.bool_()),
            "l": lists,
            "ls": pc.cast(lists, pa.list_(pa.string())),
            "ts": held(moments, pa.timestamp("us")),
            "d": held(moments.astype("datetime64[D]"), pa.date32()),
        }
    )


def chosen(count: int, seed: int) -> list[str]:
    """A call of each of some functions."""
    each = [random.Random(f"{seed} {name}").choice(found) for name, found in calls()]
    return random.Random(seed).sample(each, count)


def passing(find: Any) -> list[int] | None:
    """The rows that pass; None if the filter is refused."""
    try:
        found: list[int] = find().to_pylist()
    except (LanceError, ValueError, OSError, NotImplementedError, pa.ArrowException):
        return None
    return sorted(found)


def compare(path: Path, rows: int, count: int, seed: int) -> int:
    table = random_table(rows, seed)
    theirs = lance.write_dataset(table, str(path), data_storage_version="2.2")
    ours, some = lance_sql.open(path), knowing(table.slice(0, 500))
    compared = 0
    for call in chosen(count, seed):
        for where in conditions(call, some):
            expected = passing(lambda: theirs.to_table(columns=["n"], filter=where)["n"])  # noqa: B023
            if expected is not None:
                assert passing(lambda: ours.scan(["n"], where).to_table()["n"]) == expected, where  # noqa: B023
                compared += 1
    return compared


@pytest.mark.parametrize("rows", SIZES)
def test_the_rows_are_those_of_pylance(tmp_path: Path, rows: int) -> None:
    assert compare(tmp_path / "t.lance", rows, 12, seed=rows) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_rows_of_large_tables_are_those_of_pylance(tmp_path: Path, seed: int) -> None:
    assert compare(tmp_path / "t.lance", 200_000, 40, seed) >= 40


#: Functions of DataFusion with their arguments: columns, or constants.
COMPUTED: list[tuple[str, list[Any]]] = [
    ("to_hex", ["i"]),
    ("gcd", ["i", "j"]),
    ("greatest", ["g", 0.25]),
    ("md5", ["t"]),
    ("levenshtein", ["t", "tj"]),
    ("split_part", ["t", "o", 1]),
    ("regexp_replace", ["t", "o", "0"]),
    ("array_sort", ["l"]),
    ("arrow_cast", ["f", "Utf8"]),
    ("lpad", ["t", "j", "xy"]),
]


@pytest.mark.parametrize("rows", SIZES)
def test_values_are_those_of_single_rows(rows: int) -> None:
    table = random_table(rows, seed=1)
    for name, arguments in COMPUTED:
        values = [
            table[argument].combine_chunks() if argument in table.column_names else pa.scalar(argument)
            for argument in arguments
        ]

        def part(start: int, count: int, name: str = name, values: list[Any] = values) -> list[Any]:
            sliced = [
                value if isinstance(value, pa.Scalar) else value.slice(start, count) for value in values
            ]
            found: list[Any] = functions.compute(name, sliced).to_pylist()
            return found

        whole = part(0, rows)
        assert whole == [value for start in range(0, rows, 4000) for value in part(start, 4000)], name
        for row in random.Random(rows).sample(range(rows), 5):
            assert [whole[row]] == part(row, 1), name


def test_threads_share_the_engine() -> None:
    numbers = pa.array(np.arange(20_000) % 997)
    expected = [format(number, "x") for number in numbers.to_pylist()]

    def run(_: int) -> bool:
        return functions.compute("to_hex", [numbers]).to_pylist() == expected

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(16)))


WHERES = ["to_hex(i) = 'a'", "gcd(i, j) = 2", "levenshtein(t, 'foo') < 3", "greatest(i, j) = 5"]


@pytest.mark.parametrize("where", WHERES)
def test_changes_reach_the_rows_of_pylance(tmp_path: Path, where: str) -> None:
    table = random_table(20_000, seed=3)
    columns = ["n", "i", "j", "t"]
    theirs = lance.write_dataset(table, str(tmp_path / "theirs.lance"))
    ours = lance_sql.write(table, tmp_path / "ours.lance")
    values = {"j": "gcd(i, j)", "t": "md5(t)"}
    theirs.update(values, where=where)
    changed = ours.update(values, where=where)
    assert ordered(changed.to_table(columns)) == ordered(theirs.to_table(columns))
    assert changed.count_rows("length(t) = 32") > 0
    again = where.replace("i", "n", 1) if where.startswith("to_hex") else where
    theirs.delete(again)
    assert ordered(changed.delete(again).to_table(columns)) == ordered(theirs.to_table(columns))


def ordered(table: pa.Table) -> pa.Table:
    return table.sort_by("n").combine_chunks()


class Shuffled:
    """A result of an engine whose rows come in another order."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._held, name)
        if name == "to_arrow_table":
            return lambda: shuffled(found())
        if name == "fetchall":
            return lambda: random.Random(0).sample(rows := found(), len(rows))
        if callable(found):
            return lambda *given: Shuffled(found(*given))
        return found


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(np.random.default_rng(0).permutation(table.num_rows))


def test_no_result_is_matched_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place in which another engine computes values for rows, with an engine that mixes them up."""
    from contextlib import contextmanager

    from lance_sql.catalog import values

    numbers = pa.array(range(1000))
    monkeypatch.setattr(functions, "_context", lambda held=functions._context: Shuffled(held()))
    assert functions.compute("gcd", [numbers, pa.scalar(1 << 20)]).to_pylist()[8:13] == [8, 1, 2, 1, 4]

    @contextmanager
    def mixed(scratch: Any = values.scratch) -> Any:
        with scratch() as connection:
            yield Shuffled(connection)

    monkeypatch.setattr(values, "scratch", mixed)
    batch = pa.record_batch({"lance_sql_row": numbers})
    _, compute = compile_value("lance_sql_row * 2 + 1", batch.schema)
    assert compute(batch).to_pylist() == [2 * number + 1 for number in range(1000)]


def test_values_that_duckdb_converts_are_matched_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results with types that Arrow or Python lack, with a DuckDB that returns other orders of rows."""
    from contextlib import contextmanager

    from lance_sql.types import exact, python_values

    for module in (exact, python_values):

        @contextmanager
        def mixed(scratch: Any = module.scratch) -> Any:
            with scratch() as connection:
                yield Shuffled(connection)

        monkeypatch.setattr(module, "scratch", mixed)
    with lance_sql.connect() as connection:
        text = "SELECT (i || ' days')::INTERVAL AS x, i::BIT AS b FROM range(20000) t(i) ORDER BY i"
        rows = connection.sql(text).fetchall()
        days = connection.sql(text).arrow()["x"].to_pylist()
    assert [value.days for value, _ in rows] == list(range(20_000))
    assert [int(bits, 2) for _, bits in rows[:300]] == list(range(300))
    assert [value.days for value in days] == list(range(20_000))


def test_rows_without_one_value_each_are_refused() -> None:
    def column(values: list[int]) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(values, pa.int64())])

    assert by_number(column([5, 6, 7]), column([2, 0, 1]), 3).to_pylist() == [6, 7, 5]
    assert by_number(column([5, 6, 7]), column([2, 0, 2]), 3) is None
    assert by_number(column([5, 6]), column([0, 1]), 3) is None
    assert by_number(pa.chunked_array([], pa.int64()), column([]), 0).to_pylist() == []
    assert number_name(["LANCE_SQL_ROW"]) == "lance_sql_row_"
    schema = pa.schema({"l": pa.list_(pa.int64())})
    _, compute = compile_value("unnest(l)", schema)
    with pytest.raises(SchemaMismatchError, match="Got 3 values for 2 rows"):
        compute(pa.record_batch([[[1, 2], [3]]], schema=schema))
    with pytest.raises(InvalidFilterError, match="cannot use \\* for all columns"):
        compile_value("greatest(*COLUMNS(*))", schema)


@pytest.mark.parametrize(
    "name", ["random", "uuid", "rand", "input_file_name", "version", "sum", "row_number"]
)
def test_what_does_not_depend_on_the_row_alone_is_unknown(name: str) -> None:
    for values in ([], [pa.array([1, 2])]):
        with pytest.raises(LookupError):
            functions.compute(name, values)
