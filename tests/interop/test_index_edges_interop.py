"""Indices over nulls, NaN, -0.0 and rows that are gone, built by us or pylance, then continued by the other.

After each step, both sides find by the index what they find without it. A quick share has every kind of
index that we write; the slow tests have the whole product.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig
from lance.query import MatchQuery

import lance_sql

NAN, INFINITY = float("nan"), float("inf")
#: Rows of a fragment.
SIZE = 24

_FLOATS: list[Any] = [NAN, -0.0, 0.0, 1.5, -1.5, INFINITY, -INFINITY, 2.0]
_TEXTS: list[Any] = ["", "a", "river stone", "b" * 40, "Wörld", "stone", "river"]
_ITEMS: list[Any] = [[], [None], [1], [1, None, 2], [2, 3], [1, 1]]
_DOCUMENTS: list[Any] = ["{}", '{"n":null}', '{"n":1}', '{"n":-1}', '{"m":2}']
_POINTS: list[Any] = [{"x": -0.0, "y": 0.0}, {"x": 1.0, "y": 2.0}, {"x": -3.0, "y": 9.0}]

_NUMBERS = (
    "= 77.5",
    "= 0.0",
    "= -0.0",
    "< 0.0",
    "> 1.5",
    ">= -0.0",
    "BETWEEN -2 AND 2",
    "IN (0.0, 2.0)",
    "<> 2.0",
)
_ANY = ("IS NULL", "IS NOT NULL")
_WORDS = ("river", "stone", "none")


class Kind(NamedTuple):
    """A kind of index: the type and values of its column, and conditions on it."""

    index: str
    type: pa.DataType
    values: list[Any]
    conditions: tuple[str, ...]
    is_written: bool = True


def _compared(*tests: str) -> tuple[str, ...]:
    return tuple(f"c {test}" for test in tests)


KINDS = {
    **{
        f"{index} of floats": Kind(index, pa.float64(), _FLOATS, _compared(*_NUMBERS, *_ANY))
        for index in ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")
    },
    **{
        f"{index} of texts": Kind(
            index,
            pa.string(),
            _TEXTS,
            _compared("= 'zzz'", "= ''", "= 'stone'", "> 'a'", "IN ('a', '')", *_ANY),
        )
        for index in ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")
    },
    "LABEL_LIST": Kind(
        "LABEL_LIST",
        pa.list_(pa.int64()),
        _ITEMS,
        ("array_has(c, 1)", "array_has_any(c, [2, 9])", "array_has_all(c, [1, 2])", *_compared(*_ANY)),
    ),
    "NGRAM": Kind(
        "NGRAM", pa.string(), _TEXTS, ("contains(c, 'ston')", "contains(c, 'Wörl')", *_compared(*_ANY))
    ),
    "INVERTED": Kind("INVERTED", pa.string(), _TEXTS, ()),
    "JSON": Kind(
        "JSON",
        pa.json_(),
        _DOCUMENTS,
        ("json_get_int(c, 'n') = 1", "json_get_int(c, 'n') < 5", *_compared(*_ANY)),
        is_written=False,
    ),
    "RTREE": Kind(
        "RTREE",
        pa.struct([pa.field("x", pa.float64(), False), pa.field("y", pa.float64(), False)]),
        _POINTS,
        ("c.x <= 0.0 AND c.x > -9 AND c.y >= 0.0 AND c.y < 99", *_compared(*_ANY)),
        is_written=False,
    ),
}


class Case(NamedTuple):
    """The kind of index, what the rows of the first fragments are, the kind of row ids, and who builds it."""

    kind: str
    first: str
    stable: bool
    begins: str

    def __str__(self) -> str:
        return "-".join([self.kind, self.first, "stable" if self.stable else "moving", self.begins])


def rows(kind: Kind, shape: str, first: int) -> pa.Table:
    """Two fragments: "edges", "nulls", or "nulls, then edges"."""
    chance = random.Random(first)
    values = [
        None if shape == "nulls" or chance.random() < 0.2 else chance.choice(kind.values)
        for _ in range(2 * SIZE)
    ]
    if shape == "nulls, then edges":
        values[:SIZE] = [None] * SIZE
    field = pa.field("c", kind.type)
    if kind.index == "RTREE":
        field = field.with_metadata({"ARROW:extension:name": "geoarrow.point"})
    return pa.table(
        [pa.array(range(first, first + 2 * SIZE), pa.int64()), pa.array(values, kind.type)],
        schema=pa.schema([pa.field("id", pa.int64()), field]),
    )


def compare(place: str, kind: Kind, step: str) -> list[str]:
    ours, theirs = lance_sql.open(place), lance.dataset(place)
    wrong = []

    def check(name: str, find: Callable[[], pa.Table], exact: list[int]) -> None:
        try:
            found = sorted(find()["id"].to_pylist())
        except Exception as error:
            wrong.append(f"{step}: {name}: {error!r:.300}")
            return
        if found != exact:
            wrong.append(f"{step}: {name}: {sorted(set(found) ^ set(exact))} of {len(exact)}")

    for where in kind.conditions:
        exact = sorted(ours.scan(["id"], where, indices=False).to_table()["id"].to_pylist())
        check(f"ours, {where}", partial(lambda where: ours.scan(["id"], where).to_table(), where), exact)
        check(f"pylance, {where}", partial(theirs.to_table, ["id"], where), exact)
        if ours.count_rows(where) != len(exact):
            wrong.append(f"{step}: count of {where}")
    for word in _WORDS if kind.index == "INVERTED" else ():
        exact = sorted(ours.search(word, "c", None, columns=["id"], use_index=False)["id"].to_pylist())
        query = MatchQuery(word, "c")
        check(f"ours, {word}", partial(ours.search, word, "c", None, columns=["id"]), exact)
        check(f"pylance, {word}", partial(theirs.to_table, ["id", "_score"], full_text_query=query), exact)
    return wrong + [f"{step}: {row}" for row in ours.verify().to_pylist()]


def live(path: Path, case: Case) -> list[str]:
    place, kind = str(path / "t.lance"), KINDS[case.kind]
    turns = [case.begins, "pylance" if case.begins == "ours" else "ours"]

    def build() -> None:
        if case.begins == "ours":
            lance_sql.open(place).create_index("c", kind.index)
        elif kind.index == "JSON":
            config = IndexConfig("json", {"target_index_type": "btree", "path": "n"})
            lance.dataset(place).create_scalar_index("c", config, name="c_idx")
        else:
            lance.dataset(place).create_scalar_index("c", kind.index)  # type: ignore[arg-type]

    def append(shape: str, first: int) -> None:
        lance.write_dataset(rows(kind, shape, first), place, mode="append", max_rows_per_file=SIZE)

    def optimize(side: str, merged: int | None = None) -> None:
        if side == "ours" and kind.is_written:
            lance_sql.open(place).optimize_indices()
        else:
            options = {} if merged is None else {"num_indices_to_merge": merged}
            lance.dataset(place).optimize.optimize_indices(**options)

    def compact(side: str) -> None:
        if side == "ours":
            lance_sql.open(place).compact()
        else:
            lance.dataset(place).optimize.compact_files()

    def delete(side: str, where: str) -> None:
        if side == "ours":
            lance_sql.open(place).delete(where)
        else:
            lance.dataset(place).delete(where)

    # Files of ours have zone maps, so that no other one would be read.
    lance.write_dataset(
        rows(kind, case.first, 0), place, max_rows_per_file=SIZE, enable_stable_row_ids=case.stable
    )
    steps: list[tuple[str, Callable[[], object]]] = [
        ("build", build),
        ("delete", lambda: delete(turns[1], "id % 5 = 0")),
        ("delete a fragment", lambda: delete(turns[0], f"id < {SIZE}")),
        ("append nulls", lambda: append("nulls", 1000)),
        ("extend", lambda: optimize(turns[1], 0)),
        ("append edges", lambda: append("edges", 2000)),
        ("merge by the other", lambda: optimize(turns[1])),
        ("compact", lambda: compact(turns[0])),
        ("append edges again", lambda: append("nulls, then edges", 3000)),
        ("merge", lambda: optimize(turns[0])),
        ("delete all but nulls", lambda: delete(turns[0], "c IS NOT NULL")),
        ("compact by the other", lambda: compact(turns[1])),
        ("merge nulls", lambda: optimize(turns[1])),
        ("delete everything", lambda: delete(turns[1], "id >= 0")),
        ("append after all", lambda: append("edges", 4000)),
        ("merge after all", lambda: optimize(turns[0])),
        ("compact at last", lambda: compact(turns[0])),
    ]
    wrong = []
    for name, step in steps:
        try:
            step()
        except Exception as error:
            wrong.append(f"{name} fails: {error!r:.400}")
            break
        wrong += compare(place, kind, name)
        if name == "build" and case.first == "nulls, then edges" and not is_used(place, kind):
            wrong.append("The index is not used")
    return wrong


def is_used(place: str, kind: Kind) -> bool:
    """Whether both sides find the rows of a condition by the index."""
    if kind.index == "INVERTED":
        return bool(lance_sql.open(place).index_statistics("c_idx")["segments"])
    ours, theirs = lance_sql.open(place), lance.dataset(place)
    in_ours = any("index c_idx" in ours.scan(["id"], where).explain() for where in kind.conditions)
    in_theirs = any("ScalarIndex" in theirs.scanner(filter=where).explain_plan() for where in kind.conditions)
    # pylance shows no index for boxes.
    return in_ours and (in_theirs or kind.index == "RTREE")


PRODUCT = [
    Case(name, first, stable, begins)
    for (name, kind), first, stable, begins in itertools.product(
        KINDS.items(), ("edges", "nulls", "nulls, then edges"), (False, True), ("ours", "pylance")
    )
    if kind.is_written or begins == "pylance"
    # pylance refuses to build it, or to extend it by the first numbers.
    if not (kind.index == "JSON" and (stable or first == "nulls"))
]
QUICK = [
    Case("BTREE of floats", "nulls, then edges", True, "ours"),
    Case("BITMAP of floats", "nulls", False, "pylance"),
    Case("ZONEMAP of texts", "nulls, then edges", True, "pylance"),
    Case("BLOOMFILTER of texts", "nulls, then edges", False, "ours"),
    Case("LABEL_LIST", "edges", True, "ours"),
    Case("NGRAM", "nulls, then edges", False, "pylance"),
    Case("INVERTED", "nulls", True, "ours"),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", QUICK, ids=str)
def test_edges(tmp_path: Path, case: Case) -> None:
    assert live(tmp_path, case) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in PRODUCT if case not in QUICK], ids=str)
def test_all_edges(tmp_path: Path, case: Case) -> None:
    assert live(tmp_path, case) == []
