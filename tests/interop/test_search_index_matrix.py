"""Every kind of index on texts, lists, documents and boxes through a life of changes, begun by either side.

After each step, what each side finds by the index is what a scan of all rows finds, and scores are equal.
A quick share has every kind and both kinds of row ids; the slow tests have the whole product.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig
from lance.query import BooleanQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery
from lance_engine.dataset import DatasetVersion

import lance_sql
from lance_sql.full_text import Boolean, Match, Phrase
from tests.support.indices import addresses

ROWS = 240
WORDS = ["river", "running", "trees", "stone", "apple", "hello", "Wörld", "a1b2", "the", "of", "fox"]


class Kind(NamedTuple):
    """A kind of index: its columns by type, and the filters that it serves."""

    types: dict[str, pa.DataType]
    values: Callable[[random.Random, pa.DataType], Any]
    filters: dict[str, tuple[str, ...]]
    #: what rows are set to where the column itself is changed
    changed: dict[str, str]
    #: whether we build it
    is_written: bool = True


def _text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, range(len(WORDS), 0, -1), k=rng.randrange(8)))


def _texts(rng: random.Random, kind: pa.DataType) -> Any:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_text(rng) if rng.random() > 0.1 else None for _ in range(rng.randrange(3))]
    return _text(rng)


def _document(rng: random.Random, kind: pa.DataType) -> str:
    values: dict[str, Any] = {"n": rng.randrange(20), "t": _text(rng), "in": {"x": rng.randrange(9) / 2}}
    if rng.random() < 0.1:
        values["t"] = None
    return json.dumps(values if rng.random() > 0.05 else {})


def _items(rng: random.Random, kind: pa.DataType) -> list[Any]:
    def item() -> Any:
        if rng.random() < 0.1:
            return None
        number = rng.randrange(8)
        return f"w{number}" if pa.types.is_string(kind.value_type) else number

    return [item() for _ in range(rng.randrange(4))]


def _point(rng: random.Random, kind: pa.DataType) -> dict[str, float]:
    x, y = rng.random() * 100, rng.random() * 100
    return {"x": x, "y": y} if kind.num_fields == 2 else {"xmin": x, "ymin": y, "xmax": x + 3, "ymax": y + 3}


def _struct(*names: str) -> pa.DataType:
    return pa.struct([pa.field(name, pa.float64(), False) for name in names])


_NUMBERS = (
    "array_has(c, 1)",
    "array_has_any(c, [1, 3])",
    "array_has_all(c, [2, 3])",
    "array_has(c, 1) AND NOT array_has(c, 2)",
    "array_has(c, 1) AND id < 200",
    "array_has(c, 7) OR array_has(c, 99)",
)
_STRINGS = ("array_has(c, 'w1')", "array_has_any(c, ['w1', 'w3'])", "array_has_all(c, ['w2', 'w3'])")
_PARTS = (
    "contains(c, 'hell')",
    "contains(c, 'Wörld')",
    "c LIKE '%river%a1b%'",
    "contains(c, 'ston') AND NOT contains(c, 'appl')",
    "contains(c, 'ston') OR contains(c, 'zzz')",
    "contains(c, 'runn') AND id > 30",
)
_MEMBERS = (
    "json_get_int(c, 'n') = 7",
    "json_get_int(c, 'n') > 15",
    "json_get_int(c, 'n') IN (1, 2, 30)",
    "json_get_int(c, 'n') <= 3 AND id > 50",
)

KINDS: dict[str, Kind] = {
    "INVERTED": Kind(
        {
            "string": pa.string(),
            "large_string": pa.large_string(),
            "list<string>": pa.list_(pa.string()),
            "large_list<large_string>": pa.large_list(pa.large_string()),
            "json": pa.json_(),
        },
        lambda rng, kind: (
            _document(rng, kind) if isinstance(kind, pa.BaseExtensionType) else _texts(rng, kind)
        ),
        {},
        {"string": "'river of stone'", "large_string": "'river of stone'"},
    ),
    "LABEL_LIST": Kind(
        {
            "list<int8>": pa.list_(pa.int8()),
            "list<int64>": pa.list_(pa.int64()),
            "large_list<uint32>": pa.large_list(pa.uint32()),
            "list<string>": pa.list_(pa.string()),
        },
        _items,
        {
            "list<int8>": _NUMBERS,
            "list<int64>": _NUMBERS,
            "large_list<uint32>": _NUMBERS,
            "list<string>": _STRINGS,
        },
        {"list<int64>": "[1, 9]", "list<string>": "['w1', 'w9']"},
    ),
    "NGRAM": Kind(
        {"string": pa.string(), "large_string": pa.large_string()},
        _texts,
        {"string": _PARTS, "large_string": _PARTS},
        {"string": "'hello river'", "large_string": "'hello river'"},
    ),
    "JSON": Kind(
        {"btree": pa.json_(), "bitmap": pa.json_()},
        _document,
        {"btree": _MEMBERS, "bitmap": _MEMBERS[:1] + _MEMBERS[2:3]},
        {},
        is_written=False,
    ),
    "RTREE": Kind(
        {"geoarrow.point": _struct("x", "y"), "geoarrow.box": _struct("xmin", "ymin", "xmax", "ymax")},
        _point,
        {
            "geoarrow.point": (
                "c.x BETWEEN 10 AND 40 AND c.y BETWEEN 20 AND 80",
                "c.x < 9 AND c.y < 60 AND id > 20",
                "c.x > 200 AND c.x < 300 AND c.y > 0 AND c.y < 9",
            ),
            "geoarrow.box": (
                "c.xmin <= 40 AND c.xmax BETWEEN 10 AND 200 AND c.ymin <= 70 AND c.ymax >= 1",
                "c.xmin BETWEEN 5 AND 60 AND c.ymin <= 70",
            ),
        },
        {},
        is_written=False,
    ),
}


class Case(NamedTuple):
    """The index, its column, and the side that starts."""

    kind: str
    type: str
    stable: bool
    begins: str

    def __str__(self) -> str:
        return "-".join([self.kind, self.type, "stable" if self.stable else "moving", self.begins])


PRODUCT = [
    Case(name, type, stable, begins)
    for name, kind in KINDS.items()
    for type, stable, begins in itertools.product(kind.types, (False, True), ("ours", "pylance"))
    if kind.is_written or begins == "pylance"
    if not (type == "btree" and stable)  # pylance refuses to build it
]


QUICK = [
    Case("INVERTED", "string", True, "ours"),
    Case("INVERTED", "json", False, "pylance"),
    Case("LABEL_LIST", "list<int64>", True, "ours"),
    Case("NGRAM", "string", False, "pylance"),
    Case("JSON", "btree", False, "pylance"),
    Case("RTREE", "geoarrow.box", True, "pylance"),
]

#: The same queries on texts for both.
QUERIES = {
    "one": (MatchQuery("river", "c"), Match("river")),
    "several": (MatchQuery("fox trees stone", "c"), Match("fox trees stone")),
    "and": (
        MatchQuery("running apple", "c", operator=FullTextOperator.AND),
        Match("running apple", operator="and"),
    ),
    "boolean": (
        BooleanQuery([(Occur.MUST, MatchQuery("apple", "c")), (Occur.MUST_NOT, MatchQuery("hello", "c"))]),
        Boolean(must=[Match("apple")], must_not=[Match("hello")]),
    ),
    "phrase": (PhraseQuery("river running", "c"), Phrase("river running")),
}
DOCUMENTS = {
    "word": (MatchQuery("t,str,river", "c"), Match("t,str,river")),
    "several": (MatchQuery("t,str,fox stone;n,number,7", "c"), Match("t,str,fox stone;n,number,7")),
    "number": (MatchQuery("in.x,number,1.5", "c"), Match("in.x,number,1.5")),
    "null": (MatchQuery("t,null,null", "c"), Match("t,null,null")),
    "phrase": (PhraseQuery("t,str,river running", "c"), Phrase("t,str,river running")),
}


def table(case: Case, rows: int, first: int, seed: int) -> pa.Table:
    rng, kind = random.Random(seed), KINDS[case.kind]
    type = kind.types[case.type]
    values = [None if rng.random() < 0.1 else kind.values(rng, type) for _ in range(rows)]
    field = pa.field("c", type)
    if case.kind == "RTREE":
        field = field.with_metadata({"ARROW:extension:name": case.type})
    array = pa.array(values, type)
    return pa.Table.from_arrays(
        [pa.array(range(first, first + rows)), array], schema=pa.schema([("id", pa.int64()), field])
    )


def build(path: str, case: Case, begins: str) -> None:
    options = {"with_position": True} if case.kind == "INVERTED" else {}
    if begins == "ours":
        lance_sql.open(path).create_index("c", case.kind, **options)
    elif case.kind == "JSON":
        config = IndexConfig("json", {"target_index_type": case.type, "path": "n"})
        lance.dataset(path).create_scalar_index("c", config, name="c_idx")
    else:
        theirs: Any = lance.dataset(path)
        theirs.create_scalar_index("c", case.kind, **options)


#: The rows whose column is changed after the index was built.
_CHANGED = "id BETWEEN 50 AND 55 OR id BETWEEN 60 AND 65"


def _stale(case: Case) -> str:
    """The rows that pylance may answer wrongly: it finds what a stable row id stood for before the change."""
    return _CHANGED if case.stable and case.type in KINDS[case.kind].changed else "false"


def compare(path: str, case: Case, step: str) -> None:
    ours, theirs = DatasetVersion.open(path), lance.dataset(path)
    if case.kind == "INVERTED":
        _compare_texts(path, case, step)
    for filter in KINDS[case.kind].filters.get(case.type, ()):
        expected = addresses(ours.scan(["_rowaddr"], filter=filter, indices=False))
        assert addresses(ours.scan(["_rowaddr"], filter=filter)) == expected, (step, filter)
        assert ours.count_rows(filter) == len(expected), (step, filter)
        stale = set(addresses(ours.scan(["_rowaddr"], filter=_stale(case))))
        found = theirs.to_table(columns=["id"], filter=filter, with_row_address=True)["_rowaddr"].to_pylist()
        assert sorted({*found} - stale) == sorted({*expected} - stale), (step, filter)
    assert ours.verify().num_rows == 0, step


def _compare_texts(path: str, case: Case, step: str) -> None:
    ours, theirs = lance_sql.open(path), lance.dataset(path)
    stale = ours.to_table(columns=["id"], filter=_stale(case))["id"].to_pylist()
    queries = DOCUMENTS if case.type == "json" else QUERIES
    for number, (name, (their_query, query)) in enumerate(queries.items()):
        filter = "id % 3 = 1" if number % 2 else None
        expected = theirs.to_table(
            columns=["id", "_score"], full_text_query=their_query, filter=filter, prefilter=True
        )
        found = ours.search(query, "c", None, columns=["id"], filter=filter)
        flat = ours.search(query, "c", None, columns=["id"], filter=filter, use_index=False, analysis={})
        scores = dict(zip(*found.to_pydict().values(), strict=True))
        assert len(scores) == found.num_rows, (step, name)
        assert scores.keys() == set(flat["id"].to_pylist()), (step, name)
        wanted = dict(zip(*expected.select(["id", "_score"]).to_pydict().values(), strict=True))
        for row in stale:
            scores.pop(row, None), wanted.pop(row, None)
        assert scores == pytest.approx(wanted, abs=1e-5, rel=1e-5), (step, name)


#: pylance compares these as lists of int64, without the index.
_CAST_BY_PYLANCE = ("list<int8>", "large_list<uint32>")


def is_used(path: str, case: Case) -> bool:
    """Whether both sides answer by the index."""
    ours, theirs = DatasetVersion.open(path), lance.dataset(path)
    if case.kind == "INVERTED":
        return bool(ours.index_statistics("c_idx")["segments"])
    filter = KINDS[case.kind].filters[case.type][0]
    in_theirs = "ScalarIndex" in theirs.scanner(filter=filter).explain_plan()
    if case.kind == "JSON" and case.stable:
        return in_theirs  # such an index does not say which ids it has: we scan
    unseen = case.kind == "RTREE" or case.type in _CAST_BY_PYLANCE
    return (in_theirs or unseen) and "index c_idx" in ours.scan(["id"], filter=filter).explain()


def live(path: Path, case: Case) -> None:
    """Build, delete, append, extend, update and compact; then the other side continues."""
    place, kind = str(path / "t"), KINDS[case.kind]
    lance.write_dataset(
        table(case, ROWS, 0, 0), place, max_rows_per_file=80, enable_stable_row_ids=case.stable
    )
    lance_sql.open(place).delete("id IN (5, 80)")
    build(place, case, case.begins)
    assert is_used(place, case)
    turns = ("ours", "pylance") if case.begins == "ours" else ("pylance", "ours")

    def optimize(side: str, *, merges: bool) -> None:
        if side == "ours" and kind.is_written:
            lance_sql.open(place).optimize_indices()
        else:
            options = {} if merges else {"num_indices_to_merge": 0}
            lance.dataset(place).optimize.optimize_indices(**options)

    steps: dict[str, Callable[[], object]] = {
        "build": lambda: None,
        "delete": lambda: lance_sql.open(place).delete("id % 7 = 3"),
        "append": lambda: lance.write_dataset(table(case, 40, 1000, 1), place, mode="append"),
        "extend": lambda: optimize(turns[0], merges=False),
        "update of another column": lambda: lance.dataset(place).update(
            {"id": "id + 100000"}, where="id % 11 = 5"
        ),
        "append ours": lambda: lance_sql.write(table(case, 30, 2000, 2), place, mode="append"),
        "compact": lambda: lance_sql.open(place).compact(),
        "extend by the other": lambda: optimize(turns[1], merges=False),
        "compact by pylance": lambda: lance.dataset(place).optimize.compact_files(),
        "delete by pylance": lambda: lance.dataset(place).delete("id % 13 = 6"),
        "merge": lambda: optimize(turns[1], merges=True),
        "merge again": lambda: optimize(turns[0], merges=True),
    }
    if case.type in kind.changed:
        changed = {"c": kind.changed[case.type]}
        steps = {
            **dict(itertools.islice(steps.items(), 5)),
            "update": lambda: lance_sql.open(place).update(changed, "id BETWEEN 50 AND 55"),
            "update by pylance": lambda: lance.dataset(place).update(changed, where="id BETWEEN 60 AND 65"),
            **dict(itertools.islice(steps.items(), 5, None)),
        }
    for name, step in steps.items():
        step()
        compare(place, case, name)
    if kind.is_written:
        assert is_used(place, case)
        assert lance_sql.open(place).index_statistics("c_idx")["uncovered_rows"] == 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", QUICK, ids=str)
def test_a_life(tmp_path: Path, case: Case) -> None:
    live(tmp_path, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in PRODUCT if case not in QUICK], ids=str)
def test_every_life(tmp_path: Path, case: Case) -> None:
    live(tmp_path, case)
