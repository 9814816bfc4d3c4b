"""Random tables with values at the edges of their types, written as datasets in many layouts."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import lance
import numpy as np
import pyarrow as pa

import lance_sql

Make = Callable[[random.Random], Any]

#: Names that are keywords or need quotes.
ODD_NAMES: Final = ("order", "Select", "a b", "list", "text", "vector", "rowid", "Ünï", "t0", "value")
#: Small tables take most of the turns: faults are as many in them, and statements take less time.
ROWS: Final = (*(0, 1, 2, 7), *[30] * 8, *[100] * 6, 300, 300)
#: Those of one table in ten: at the edges of the engines' batches.
_LARGER: Final = (1500, 8191, 8192, 8193)
#: Now and then, for which few rows are repeated.
_MANY: Final = 200_000
_DISTINCT: Final = 2_000
TABLE_NAMES: Final = ("t0", "select", "T 0", "order", "Größe", "k", "c0", 'a"b')
_WORDS: Final = ("", "a", "b", "ab", "abc", "a%c", "a_c", "A", "äö", "z" * 40, "100", "%")


INDEX_KINDS: Final = ("btree", "bitmap", "zonemap", "bloomfilter", "label_list", "ngram", "inverted")


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
    #: numbers inside, as DuckDB and as DataFusion write them
    inside: tuple[tuple[str, str], ...] = ()


def _struct(**fields: Make) -> Make:
    return lambda chosen: {name: _or_null(make, chosen, 0.2) for name, make in fields.items()}


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
        _struct(a=_number(-5, 20), B=_word),
        "struct",
    ),
    Kind(pa.float16(), lambda chosen: np.float16(chosen.randint(-8, 40) / 4), "other"),
    Kind(pa.binary(3), lambda chosen: chosen.choice([b"abc", b"\0\0\0", b"ab\xff"]), "other"),
    Kind(pa.large_binary(), lambda chosen: chosen.choice(_WORDS).encode(), "other"),
    Kind(pa.time64("us"), lambda chosen: (_moment(chosen)).time(), "other"),
    Kind(pa.timestamp("us", "UTC"), _moment, "other"),
    Kind(pa.timestamp("ms", "Europe/Berlin"), lambda chosen: _moment(chosen).replace(microsecond=0), "other"),
    Kind(pa.list_(pa.float32(), 2), lambda chosen: [chosen.randint(0, 9) / 2] * 2, "deep"),
    Kind(pa.large_list(pa.int64()), _listed(_number(-5, 20)), "list"),
    Kind(
        pa.list_(pa.list_(pa.list_(pa.int16()))),
        _listed(_listed(_listed(_number(-5, 20)))),
        "deep",
        (("{}[1][1][1]", "{}[1][1][1]"),),
    ),
    Kind(
        pa.list_(pa.struct([("x", pa.int32()), ("l", pa.list_(pa.string()))])),
        _listed(_struct(x=_number(-5, 20), l=_listed(_word))),
        "deep",
        (("{}[1].x", "{}[1]['x']"), ("len({}[1].l)", "array_length({}[1]['l'])")),
    ),
    Kind(
        pa.struct([("p", pa.struct([("q", pa.struct([("z", pa.int64())])), ("l", pa.list_(pa.int32()))]))]),
        _struct(p=_struct(q=_struct(z=_number(-5, 20)), l=_listed(_number(-5, 20)))),
        "deep",
        (("({}).p.q.z", "{}['p']['q']['z']"), ("({}).p.l[1]", "{}['p']['l'][1]")),
    ),
    Kind(
        pa.map_(pa.string(), pa.int32()),
        lambda chosen: [(word, _or_null(_SMALL, chosen, 0.2)) for word in chosen.sample(_WORDS, 2)],
        "map",
    ),
)  # fmt: skip
#: Groups of types whose values are neither compared nor sorted by random statements.
NESTED: Final = ("list", "struct", "deep", "map", "other")


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
    names = [f"t{number}" for number in range(count)]
    if chosen.random() < 0.3:
        names = chosen.sample(TABLE_NAMES, count)
    # One of them is small, so that joins with it are.
    return [_write(folder, chosen, name, is_small=not place) for place, name in enumerate(names)]


def _write(folder: Path, chosen: random.Random, name: str, *, is_small: bool) -> RandomTable:
    # Columns that several tables have, so that joins find equal values.
    kinds: dict[str, Kind] = {"k": KINDS[2], "g": Kind(pa.int32(), _number(0, 9), "number"), "s": KINDS[14]}
    for number in range(chosen.randint(2, 6)):
        kinds[chosen.choice([f"c{number}", f"C{number}x", *ODD_NAMES])] = chosen.choice(KINDS)
    kinds = {given: kind for place, (given, kind) in enumerate(kinds.items())
             if given.lower() not in [other.lower() for other in list(kinds)[:place]]}  # fmt: skip
    count = chosen.choice([40, 1, 0] if is_small else _LARGER if chosen.random() < 0.1 else ROWS)
    many = not is_small and chosen.random() < 0.005
    nulls = {given: chosen.choice([0, 0, 0.1, 0.5, 1]) for given in kinds}
    data = pa.table(
        {
            given: pa.array(
                [_or_null(kind.make, chosen, nulls[given]) for _ in range(_DISTINCT if many else count)],
                kind.arrow,
            )
            for given, kind in kinds.items()
        }
    )
    if many:
        count = _MANY
        data = data.take(pa.array(np.random.default_rng(count).integers(0, _DISTINCT, count)))
    groups = {kind.group for kind in kinds.values()}
    versions = ["2.0", "2.1", "2.1", "2.2"]
    if groups & {"struct", "deep"}:
        versions = ["2.1", "2.2"]  # 2.0 does not store which structs are null
    path = folder / f"{name}.lance"
    lance_sql.write(
        data,
        path,
        data_storage_version="2.2" if "map" in groups else chosen.choice(versions),
        max_rows_per_file=chosen.choice([1 << 20, max(1, count // 3), max(1, count // 7)]),
        stable_row_ids=chosen.random() < 0.3,
    )
    columns = tuple(Column(given, kind) for given, kind in kinds.items())
    for _ in range(chosen.choice([0, 1, 2, 4])):
        _change(path, chosen, data, columns)
    return RandomTable(name, columns, lance.dataset(str(path)).to_table())


def change(folder: Path, table: RandomTable, chosen: random.Random) -> RandomTable:
    """The table after one more change."""
    path = folder / f"{table.name}.lance"
    _change(path, chosen, table.rows, table.columns)
    return table._replace(rows=lance.dataset(str(path)).to_table())


def _change(path: Path, chosen: random.Random, data: pa.Table, columns: tuple[Column, ...]) -> None:
    """A deletion, an index by us or by pylance, more rows, or rows that move."""
    dataset = lance_sql.open(path)
    match chosen.randint(0, 6):
        case 0:
            dataset.delete(f"g = {chosen.randint(0, 9)}")
        case 1:
            dataset.delete(f"k > {chosen.randint(0, 20)}")
        case 2 | 3 if dataset.count_rows():
            kind, column = chosen.choice(INDEX_KINDS), chosen.choice(columns).name
            # Not every kind fits every type.
            with suppress(lance_sql.LanceError):
                dataset.create_index(
                    column if chosen.random() < 0.5 else chosen.choice("kgs"), kind, replace=True
                )
        case 4 if dataset.count_rows():
            kind, column = chosen.choice(["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"]), chosen.choice("kgs")
            lance.dataset(str(path)).create_scalar_index(column, kind, name=f"{column}_theirs", replace=True)
        case 5:
            lance_sql.write(data.slice(0, chosen.randint(0, 20)), path, mode="append")
        case 6:
            change = chosen.choice(
                [
                    lambda: dataset.update({"g": "g + 1"}, f"k < {chosen.randint(-5, 20)}"),
                    lambda: dataset.compact(),
                    lambda: dataset.optimize_indices(),
                ]
            )
            change()
