"""Filters mean the same here as in pylance: every example in `docs/filters.md`."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError

import lance_sql

PAGE = Path(__file__).parents[2] / "docs" / "filters.md"
TIME = datetime.datetime(2024, 5, 6, 7, 8, 9, 123456)
OLD, LEAP, Y2K = (datetime.datetime(*day) for day in ((1969, 12, 31), (2024, 2, 29), (2000, 1, 1)))
TABLE = pa.table(
    {
        "n": pa.array(range(5)),
        "i": pa.array([7, -7, 0, None, 9], pa.int64()),
        "j": pa.array([2, 2, 3, 4, None], pa.int32()),
        "f": pa.array([1.5, float("nan"), -0.0, None, 2.25]),
        "u": pa.array([1, 2, 3, 4, None], pa.uint8()),
        "t": pa.array(["foo", "Bar baz", "", None, "héllo"]),
        "b": pa.array([b"a", b"bc", b"", None, b"\xff"]),
        "x": pa.array([True, False, None, True, False]),
        "l": pa.array([[1, 2], [], None, [3, None], [2]], pa.list_(pa.int64())),
        "ls": pa.array([["a", "b"], ["a"], None, [None], []], pa.list_(pa.string())),
        "ts": pa.array([TIME, OLD, LEAP, None, Y2K], pa.timestamp("us")),
        "d": pa.array([moment and moment.date() for moment in (TIME, OLD, LEAP, None, Y2K)], pa.date32()),
        "s": pa.array(
            [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None, {"a": 3, "b": None}, {"a": 5, "b": "z"}]
        ),
        "de": pa.array([1, 2, None, 4, 5], pa.decimal128(10, 2)),
        "js": pa.array(
            ['{"a":1,"b":"x","c":[1,2],"d":{"e":true}}', '{"a":2.5}', "null", None, '{"a":"1","c":["x"]}'],
            pa.json_(),
        ),
    }
)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("filters") / "t.lance")
    lance.write_dataset(TABLE, path, data_storage_version="2.2")
    return path


def ours(uri: str, where: str) -> list[int]:
    found: list[int] = lance_sql.open(uri).scan(columns=["n"], filter=where).to_table()["n"].to_pylist()
    return found


def theirs(uri: str, where: str) -> list[int]:
    found: list[int] = lance.dataset(uri).to_table(columns=["n"], filter=where)["n"].to_pylist()
    return found


def documented() -> list[str]:
    """The examples in the tables of the page."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [
        example for row in rows for example in re.findall(r"``? ?(.+?) ?``?(?=[,|] ?|$)", row.split("|")[2])
    ]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("where", documented())
def test_examples_of_the_page(uri: str, where: str) -> None:
    where = where.replace("\\|", "|")
    found = theirs(uri, where)
    assert ours(uri, where) == found
    assert lance_sql.open(uri).scan(filter=where).count() == len(found)
    assert lance_sql.open(uri).count_rows(where) == len(found)


MORE = """
    NOT array_has(l, 2)
    array_has(l, j)
    array_has(l, NULL)
    NOT array_has_any(l, [2, 3])
    NOT array_has_all(l, [1, 2])
    array_has_any(l, [NULL])
    array_has_any(ls, ['a', NULL])
    array_has_all(l, [])
    array_has_all(l, [NULL])
    array_has(l, 2.0)
    l[0] IS NULL
    l[j] = 2
    l[2] IS NULL
    l = [1, 2]
    [1, 2] = l
    array_position(l, 9) IS NULL
    NOT regexp_match(t, 'o+')
    regexp_match(t, 'o+') IS NULL
    regexp_match(t, '(f)(o)')[2] = 'o'
    regexp_match(t, 'O+', 'i')
    i > 0 AND regexp_match(t, 'o+')
    i / 2 = -3
    i / j = 3
    7 / 2 = 3
    -i / 2 = -3
    (i + j) / 2 = 4
    f / 2 = 0.75
    de / 2 = 0.5
    i * 1.0 / 2 = 3.5
    CAST(i AS double) / 2 = 3.5
    json_get_int(js, 'a') = 3
    json_get_int(json_get(js, 'c'), '1') = 2
    json_extract(js, '$.c[*]') = '[1,2]'
    json_extract(js, '$.d.*') = 'true'
    NOT json_exists(js, '$.a')
    NOT json_array_contains(js, '$.c', 1)
    json_array_length(js, '$.a') IS NULL
    strpos(t, '') = 1
    concat(t, f) = '-0.0'
    concat(t, NULL) = 'foo'
    t || i = 'foo7'
    f <= 0
    f > 1e300
    left(t, -1) = 'fo'
    right(t, -1) = 'oo'
    date_trunc('month', d) = d
    date_trunc('week', ts) = timestamp '2024-05-06'
    date_part('millisecond', ts) = 9123
    date_part('epoch', ts) = 1714979289.123456
    ltrim(t, 'f') = 'oo'
    b = X'ff'
    lower(`t`) = 'foo'
    sha256(t) IS NOT NULL
"""


@pytest.mark.sampled(12)
@pytest.mark.parametrize("where", [line.strip() for line in MORE.strip().splitlines()])
def test_more_conditions(uri: str, where: str) -> None:
    assert ours(uri, where) == theirs(uri, where)


def test_double_quotes_name_columns(uri: str) -> None:
    # Text to pylance: that it is not here must be heard.
    assert theirs(uri, 't = "foo"') == [0]
    with pytest.raises(ColumnNotFoundError, match="Double quotes name a column: write 'foo' for a string"):
        ours(uri, 't = "foo"')
    assert ours(uri, '"i" = 7') == [0]


def test_times_of_the_call(uri: str) -> None:
    for now in ("now()", "current_timestamp", "current_timestamp()", "current_date", "current_date()"):
        assert ours(uri, f"ts < {now}") == [0, 1, 2, 4]
        assert ours(uri, f"{now} < ts") == []


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("json_extract(js, 'a') = '1'", "is not a supported JSON path"),
        ("json_get_bool(js, 'a')", "not a boolean"),
        ("json_get_string(js, 'd') = 'x'", "as a string"),
        ("array_has(t, 'f')", "is not a list"),
        ("nosuch(t)", "Unknown function nosuch"),
        ("sum(i) > 1", "Unknown function sum"),
        ("random() > 0", "Unknown function random"),
        ("date_trunc('eon', ts) = ts", "Unsupported date_trunc granularity"),
        ("b = X'6'", "is not binary"),
    ],
)
def test_refusals(uri: str, where: str, message: str) -> None:
    with pytest.raises(InvalidFilterError, match=message):
        ours(uri, where)


CHANGES = """
    i / 2 = 3
    array_has(l, 2)
    `t` = 'foo'
    b = X'61'
    md5(t) IS NOT NULL
    json_extract(js, '$.a') = '1'
    json_exists(js, '$.d.e')
    json_get(js, 'b') IS NOT NULL
    json_array_length(js, '$.c') = 2
    regexp_match(t, 'o+')
    l[1] = 3
    date_trunc('month', ts) = timestamp '2024-05-01'
    ts = timestamp(6) '2024-05-06 07:08:09.123456'
    t || 'x' = 'foox'
    strpos(t, 'o') = 2
    nullif(i, 7) IS NULL
    octet_length(t) = 6
"""


def test_deletes_and_updates(tmp_path: Path) -> None:
    for where in map(str.strip, CHANGES.strip().splitlines()):
        uris = [str(tmp_path / f"{side} {abs(hash(where))}") for side in ("ours", "theirs")]
        for path in uris:
            lance.write_dataset(TABLE, path, data_storage_version="2.2")
        assert lance_sql.open(uris[0]).count_rows(where) == lance.dataset(uris[1]).count_rows(where) > 0
        changed = lance_sql.open(uris[0]).update({"i": "i / 2", "u": "u + 1"}, where=where)
        lance.dataset(uris[1]).update({"i": "i / 2", "u": "u + 1"}, where=where)
        assert rows(changed) == rows(lance_sql.open(uris[1]))
        deleted = changed.delete(where)
        lance.dataset(uris[1]).delete(where)
        assert rows(deleted) == rows(lance_sql.open(uris[1]))


def rows(dataset: lance_sql.Dataset) -> list[dict[str, Any]]:
    found = dataset.scan().to_table().to_pylist()
    return sorted(({**row, "f": str(row["f"])} for row in found), key=lambda row: row["n"])


def test_sql_divides_as_its_engine(tmp_path: Path) -> None:
    """Dividing integers returns a fraction in DuckDB, unlike in filters."""
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"i": [7, 6], "f": [0.0, 0.0]}), path)
    lance_sql.sql(f"UPDATE '{path}' SET f = i / 2")
    assert lance_sql.open(path).scan().to_table()["f"].to_pylist() == [3.5, 3.0]
    lance_sql.sql(f"DELETE FROM '{path}' WHERE i / 2 = 3")
    assert lance_sql.open(path).scan().to_table()["i"].to_pylist() == [7]


FIELDS = [
    ("c[1]['x'] > 1", [0]),
    ("NOT (c[1]['x'] > 1)", [5]),
    ("c[1]['x'] IS NULL", [1, 2, 3, 4]),
    ("c[-1]['x'] = 7 OR get_field(c[1], 'x') = 5", [0, 5]),
    ("c[1]['x'] IN (1, 5)", [0, 5]),
    ("array_length(c[1]['l']) > 0 AND c[1]['l'][1] = 'b'", [5]),
    ("c[1]['q']['z'] = 1", [0]),
    ("c[1].q.z = 1", [0]),
    ("s['p'][1]['x'] > 0", [0, 5]),
    ("named_struct('a', id)['a'] = 3", [3]),
]


def test_fields_of_structs_in_lists(tmp_path: Path) -> None:
    item = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.string())), ("q", pa.struct([("z", pa.int64())]))])
    empty: dict[str, Any] = {"x": None, "l": None, "q": None}
    lists: list[Any] = [[{"x": 5, "l": ["a"], "q": {"z": 1}}, None], [None], [], None, [empty]]
    lists.append([{"x": 1, "l": ["b"], "q": {"z": None}}, {"x": 7, "l": [], "q": {"z": 9}}])
    table = pa.table(
        {
            "id": range(6),
            "c": pa.array(lists, pa.list_(item)),
            "s": pa.array([{"p": one} for one in lists], pa.struct([("p", pa.list_(item))])),
        }
    )
    theirs = lance.write_dataset(table, str(tmp_path / "t.lance"), data_storage_version="2.2")
    ours = lance_sql.open(tmp_path / "t.lance")
    for text, expected in FIELDS:
        assert ours.to_table(["id"], text)["id"].to_pylist() == expected, text
        assert theirs.to_table(["id"], text)["id"].to_pylist() == expected, text
    with pytest.raises(ColumnNotFoundError, match="nope"):
        ours.count_rows("c[1]['nope'] = 1")
    with pytest.raises(InvalidFilterError, match="not a struct"):
        ours.count_rows("c[1]['x']['y'] = 1")
