"""Random tables with values at the edges of their types, written as datasets in many layouts."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import lance
import pyarrow as pa

import lance_sql

Make = Callable[[random.Random], Any]

#: Names that are keywords or need quotes.
ODD_NAMES: Final = ("order", "Select", "a b", "list", "text", "vector", "rowid", "Ünï", "t0", "value")
ROWS: Final = (0, 1, 2, 40, 300, 300, 300, 1500, 8191, 8193)
_WORDS: Final = ("", "a", "b", "ab", "abc", "a%c", "a_c", "A", "äö", "z" * 40, "100", "%")


def _number(low: int, high: int) -> Make:
    return lambda chosen: chosen.choice(
        [low, high, 0, 1, chosen.randint(low, high), *[chosen.randint(0, 20)] * 8]
    )


def _float(chosen: random.Random) -> float:
    edges = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-300, 0.1]
    return chosen.choice([*edges, *[chosen.randint(-8, 40) / 4] * 12])


def _decimal(digits: int, scale: int) -> Make:
    most = 10**digits - 1
    return lambda chosen: Decimal(
        f"{chosen.choice([most, -most, *[chosen.randint(-300, 300)] * 8])}e-{scale}"
    )


def _date(chosen: random.Random) -> datetime.date:
    return datetime.date(2024, 1, 1) + datetime.timedelta(
        days=chosen.choice([-40000, *[chosen.randint(0, 60)] * 6])
    )


def _moment(chosen: random.Random) -> datetime.datetime:
    return datetime.datetime(2024, 3, 1) + datetime.timedelta(
        hours=chosen.randint(-80, 80), microseconds=chosen.choice([0, 1])
    )


def _word(chosen: random.Random) -> str:
    return chosen.choice(_WORDS)


def _listed(make: Make, kind: Callable[[list[Any]], Any] = list) -> Make:
    return lambda chosen: kind([_or_null(make, chosen, 0.2) for _ in range(chosen.choice([0, 1, 2, 3]))])


def _or_null(make: Make, chosen: random.Random, nulls: float) -> Any:
    return None if chosen.random() < nulls else make(chosen)


class Kind(NamedTuple):
    """A column type: how it is stored, what values it has, and what statements may do with it."""

    arrow: pa.DataType
    make: Make
    group: str


_SMALL: Final = _number(-(1 << 15), (1 << 15) - 1)
KINDS: Final = (
    *[Kind(pa.int64(), _number(-(1 << 63), (1 << 63) - 1), "number")] * 2,
    *[Kind(pa.int32(), _number(-(1 << 31), (1 << 31) - 1), "number")] * 3,
    Kind(pa.int16(), _SMALL, "number"),
    Kind(pa.uint8(), _number(0, 255), "number"),
    Kind(pa.uint32(), _number(0, (1 << 32) - 1), "number"),
    Kind(pa.uint64(), _number(0, (1 << 64) - 1), "number"),
    *[Kind(pa.float64(), _float, "float")] * 2,
    Kind(pa.float32(), _float, "float"),
    Kind(pa.decimal128(9, 2), _decimal(9, 2), "decimal"),
    Kind(pa.decimal128(38, 10), _decimal(38, 10), "decimal"),
    *[Kind(pa.string(), _word, "text")] * 3,
    Kind(pa.large_string(), _word, "text"),
    Kind(pa.binary(), lambda chosen: chosen.choice(_WORDS).encode(), "binary"),
    Kind(pa.bool_(), lambda chosen: chosen.random() < 0.5, "boolean"),
    *[Kind(pa.date32(), _date, "date")] * 2,
    Kind(pa.timestamp("us"), _moment, "moment"),
    Kind(pa.timestamp("ns"), _moment, "moment"),
    Kind(pa.timestamp("s"), lambda chosen: _moment(chosen).replace(microsecond=0), "moment"),
    Kind(pa.list_(pa.int32()), _listed(_number(-5, 20)), "list"),
    Kind(pa.list_(pa.string()), _listed(_word), "list"),
    Kind(
        pa.struct([("a", pa.int32()), ("B", pa.string())]),
        lambda chosen: {"a": _or_null(_number(-5, 20), chosen, 0.2), "B": _or_null(_word, chosen, 0.2)},
        "struct",
    ),
)  # fmt: skip


class Column(NamedTuple):
    """A column of a table, by its name."""

    name: str
    kind: Kind


class RandomTable(NamedTuple):
    """A dataset, its columns, and its rows as the official implementation reads them."""

    name: str
    columns: tuple[Column, ...]
    rows: pa.Table


def write_tables(folder: Path, seed: int, count: int = 3) -> list[RandomTable]:
    """Datasets in `folder`, with fragments, deletions and indices as the seed says."""
    chosen = random.Random(seed)
    return [_write(folder, chosen, f"t{number}") for number in range(count)]


def _write(folder: Path, chosen: random.Random, name: str) -> RandomTable:
    # Columns that several tables have, so that joins find equal values.
    kinds: dict[str, Kind] = {"k": KINDS[2], "g": Kind(pa.int32(), _number(0, 9), "number"), "s": KINDS[14]}
    for number in range(chosen.randint(2, 6)):
        kinds[chosen.choice([f"c{number}", f"C{number}x", *ODD_NAMES])] = chosen.choice(KINDS)
    kinds = {given: kind for place, (given, kind) in enumerate(kinds.items())
             if given.lower() not in [other.lower() for other in list(kinds)[:place]]}  # fmt: skip
    count = chosen.choice(ROWS)
    nulls = {given: chosen.choice([0, 0, 0.1, 0.5, 1]) for given in kinds}
    data = pa.table(
        {
            given: pa.array([_or_null(kind.make, chosen, nulls[given]) for _ in range(count)], kind.arrow)
            for given, kind in kinds.items()
        }
    )
    path = folder / f"{name}.lance"
    lance_sql.write(
        data,
        path,
        data_storage_version=chosen.choice(["2.0", "2.1", "2.1", "2.2"]) if "struct" not in
        [kind.group for kind in kinds.values()] else "2.1",
        max_rows_per_file=chosen.choice([1 << 20, max(1, count // 3), max(1, count // 7)]),
        stable_row_ids=chosen.random() < 0.3,
    )  # fmt: skip
    dataset = lance_sql.open(path)
    if chosen.random() < 0.5:
        dataset = dataset.delete(f"g = {chosen.randint(0, 9)}")
    if chosen.random() < 0.4 and dataset.count_rows():
        lance.dataset(str(path)).create_scalar_index(
            chosen.choice(["k", "g", "s"]), chosen.choice(["BTREE", "BITMAP"])
        )
    if chosen.random() < 0.3:
        lance_sql.write(data.slice(0, chosen.randint(0, 20)), path, mode="append")
    columns = tuple(Column(given, kind) for given, kind in kinds.items())
    return RandomTable(name, columns, lance.dataset(str(path)).to_table())


def as_tables(tables: list[RandomTable]) -> Mapping[str, pa.Table]:
    """The rows by the names of the tables."""
    return {table.name: table.rows for table in tables}
