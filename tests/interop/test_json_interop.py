"""JSON columns: text on both sides, binary in the files, and the same bytes for the same text."""

from __future__ import annotations

import json
import math
import random
import struct
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from lance_engine import kernels
from lance_engine.encodings.jsonb import json_text
from lance_engine.errors import CorruptFileError, LanceError, SchemaMismatchError

import lance_sql

JSON = pa.json_()
INTEGERS = [
    sign * (1 << bits) + step
    for bits in (0, 7, 8, 15, 16, 31, 32, 63)
    for sign in (1, -1)
    for step in (-1, 0, 1)
]
NUMBERS = [
    *(str(number) for number in INTEGERS if number >= -(2**63)),
    *("18446744073709551615", "18446744073709551616", "-9223372036854775809"),
    *("-0", "-0.0", "0.0", "1.0", "0.1", "1e3", "1E+3", "1e15", "1e16", "12345678.5", "0.00001", "0.000001"),
    *("1.5e-5", "1.5e-6", "-2.5e-7", "1e20", "1e100", "1.7976931348623157e308", "5e-324", "1e-400"),
]
TEXTS: list[str | None] = [
    *NUMBERS,
    *(
        "null",
        "true",
        "false",
        None,
        '""',
        '"a"',
        '"é😀"',
        '"\\u0000\\b\\f\\n\\r\\t\\u001f\\u007f\\/\\"\\\\"',
    ),
    *('"\\u00e9\\ud83d\\ude00"', "[]", "{}", " [ 1 , [ ] , { } ] ", '{"b":1,"a":2}', '{"é":1,"z":2,"":3}'),
    *('[null,true,false,1,"x",[1],{"k":"v"},1.5]', '{"bb":1,"a":2,"aaa":{"z":[],"y":{}}}', None),
    *("[" * 300 + "]" * 300, json.dumps(list(range(3000))), json.dumps("long " * 50_000)),
]
WRITERS = [lance.write_dataset, lance_sql.write]


def nested() -> dict[str, pa.Array]:
    """JSON in structs and lists, where it is not JSON below nulls."""
    texts = pa.array(["1", "no JSON", None, '{"a":[1]}', "[]", '"x"'], JSON)
    field = pa.field("j", JSON)
    structs = pa.StructArray.from_arrays(
        [texts], fields=[field], mask=pa.array([False, True, False, False, False, False])
    )
    item = pa.field("item", JSON)
    is_null = pa.array([False, True, False, False, False, False])
    offsets = pa.array([0, 1, 2, 2, 4, 4, 6], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, texts, pa.list_(item), mask=is_null)
    kind = pa.large_list(pa.field("item", structs.type))
    deep = pa.LargeListArray.from_arrays(pa.array([0, 2, 2, 3, 3, 4, 6], pa.int64()), structs, kind)
    return {"struct": structs, "list": lists, "list of structs": deep}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_both_write_the_same_bytes_and_read_the_same_text(tmp_path: Path, version: str) -> None:
    table = pa.table({"x": range(len(TEXTS)), "j": pa.array(TEXTS, JSON)})
    found = []
    for number, write in enumerate(WRITERS):
        uri = str(tmp_path / f"{number}.lance")
        write(table, uri, data_storage_version=version)
        ours, theirs = lance_sql.open(uri), lance.dataset(uri)
        assert ours.scan().to_table().equals(theirs.to_table())
        assert ours.scan().to_table().schema.field("j").type == JSON
        rows = [5, len(TEXTS) - 1, 3]
        assert ours.take(rows).equals(theirs.take(rows))
        assert ours.take([]).schema.types == theirs.schema.types
        (file,) = Path(uri, "data").iterdir()
        found.append(LanceFileReader(str(file)).read_all().to_table()["j"].combine_chunks())
    assert found[0].to_pylist() == found[1].to_pylist()
    for text, back in zip(TEXTS, ours.scan().to_table()["j"].to_pylist(), strict=True):
        # Integers of more than 64 bits are doubles.
        assert back is None if text is None else back == text or json.loads(back) == as_stored(text)


def as_stored(text: str) -> Any:
    value = json.loads(text)
    return float(value) if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("kind", ["struct", "list", "list of structs"])
def test_nested_json(tmp_path: Path, version: str, kind: str) -> None:
    for begin in (0, 2):
        array = nested()[kind].slice(begin)
        uri = str(tmp_path / f"{begin}.lance")
        lance_sql.write(pa.table({"v": array}), uri, data_storage_version=version)
        expected = array.to_pylist()
        assert lance_sql.open(uri).scan().to_table()["v"].to_pylist() == expected
        assert lance.dataset(uri).to_table()["v"].to_pylist() == expected
        assert lance_sql.open(uri).scan().to_table().schema.types == [array.type]


def test_map_of_json(tmp_path: Path) -> None:
    texts = pa.array(["1", None, '{"a":1}', "[]"], JSON)
    array = pa.MapArray.from_arrays(pa.array([0, 1, 2, 2, 4], pa.int32()), pa.array(list("abcd")), texts)
    for number, write in enumerate(WRITERS):
        uri = str(tmp_path / f"{number}.lance")
        write(pa.table({"m": array}), uri, data_storage_version="2.2")
        assert lance_sql.open(uri).scan().to_table()["m"].to_pylist() == array.to_pylist()
        assert lance.dataset(uri).to_table()["m"].to_pylist() == array.to_pylist()


def random_json(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [random_json(rng, depth - 1) for _ in range(rng.randrange(5))]
    if kind == 7:
        return {random_text(rng): random_json(rng, depth - 1) for _ in range(rng.randrange(5))}
    if kind == 5:
        (number,) = struct.unpack("<d", rng.randbytes(8))
        return number if math.isfinite(number) else 0.5
    choices = (None, rng.random() < 0.5, rng.randrange(-(2**63), 2**64), rng.randrange(300), random_text(rng))
    return choices[kind]


def random_text(rng: random.Random) -> str:
    codes = [0, 9, 10, 31, 34, 92, 0xE9, 0x1F600, *range(32, 127)]
    return "".join(map(chr, rng.choices(codes, k=rng.randrange(9))))


def test_random_values_survive(tmp_path: Path) -> None:
    rng = random.Random(7)
    values = [random_json(rng, 4) for _ in range(3000)]
    texts = [json.dumps(value, ensure_ascii=rng.random() < 0.5) for value in values]
    uri = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"j": pa.array(texts, JSON)}), uri)
    ours = lance_sql.open(uri).scan().to_table()["j"].to_pylist()
    assert [json.loads(text) for text in ours] == values
    assert ours == lance.dataset(uri).to_table()["j"].to_pylist()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "a value was expected at byte 0"),
        ("nul", "a value was expected at byte 0"),
        ("1 2", "there is more behind the value at byte 2"),
        ("[1,]", "a value was expected at byte 3"),
        ("[1", r"a comma or \] was expected at byte 2"),
        ('{"a" 1}', "a colon was expected at byte 5"),
        ("{a:1}", "a key was expected at byte 1"),
        ('{"a":1,"a":2}', "the same key twice"),
        ("01", "leading zeros"),
        ("1.", "a digit was expected"),
        (".5", "a value was expected"),
        ("+1", "a value was expected"),
        ("NaN", "a value was expected"),
        ("1e400", "too large"),
        ("-1" + "0" * 400, "too large"),
        ('"a', "does not end"),
        ('"\t"', "control character"),
        ('"\\x"', "unknown escape"),
        ('"\\ud800"', "surrogate"),
        ('"\\ude00x"', "surrogate"),
        ('"\\u12g4"', "hexadecimal"),
        ("[" * 2000 + "]" * 2000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(SchemaMismatchError, match=what + ".*column: j"):
        lance_sql.write(pa.table({"j": pa.array(["1", None, text], JSON)}), str(tmp_path / "t.lance"))
    assert not list(tmp_path.glob("t.lance/data/*"))


def binary_of(text: str, folder: Path) -> bytes:
    uri = str(folder / "binary.lance")
    lance.write_dataset(pa.table({"j": pa.array([text], JSON)}), uri, mode="overwrite")
    (file,) = Path(uri, "data").iterdir()
    value: bytes = LanceFileReader(str(file)).read_all().to_table()["j"][0].as_py()
    return value


def test_damaged_values_never_escape(tmp_path: Path) -> None:
    whole = binary_of('{"a":[1,-300,2.5,"text",null,{"b":[[],{}]}],"c":"\\u0001é"}', tmp_path)
    rng = random.Random(3)
    for _ in range(5000):
        value = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            value[rng.randrange(len(value))] = rng.choice((rng.randrange(256), 0, 255, 0x50, 0x80))
        del value[rng.randrange(len(value) // 2, len(value) + 1) :]
        try:
            text = json_text(pa.array([bytes(value)], pa.large_binary()))
        except kernels.InvalidJsonError:
            continue
        text.validate(full=True)
        json.loads(text[0].as_py())


def test_damaged_values_are_errors_that_name_the_column(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"x": [1, 2], "j": pa.array(['"abcdefgh"', "null"], JSON)}), uri)
    (file,) = Path(uri, "data").iterdir()
    content = file.read_bytes()
    assert content.count(b"abcdefgh") == 1
    file.write_bytes(content.replace(b"abcdefgh", b"abcd\xfffgh"))
    with pytest.raises(CorruptFileError, match=r"a string that is not UTF-8.*column: j"):
        lance_sql.open(uri).scan().to_table()
    with pytest.raises(CorruptFileError, match="a string that is not UTF-8"):
        lance_sql.open(uri).take([0])
    assert lance_sql.open(uri).scan(columns=["x"]).to_table()["x"].to_pylist() == [1, 2]


def test_operations_keep_json(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    texts = pa.array(["1", '{"a":1}', None, "[1]"], JSON)
    dataset = lance_sql.write(pa.table({"x": range(4), "j": texts, "s": ["1", "[ 2 ]", None, "{}"]}), uri)
    dataset = dataset.update({"j": "'{\"z\": [1, 2]}'"}, where="x = 2")
    with pytest.raises(SchemaMismatchError, match="is not valid JSON"):
        dataset.update({"j": "'{'"}, where="x = 2")
    rows = pa.table({"x": [0, 9], "j": pa.array(["7", "8"], JSON), "s": ["a", "b"]})
    dataset = dataset.merge(rows, on="x").when_matched_update_all().when_not_matched_insert_all().execute()
    dataset = lance_sql.write(pa.table({"x": [10], "j": ['{"q": 1}']}), uri, mode="append")
    lance.write_dataset(pa.table({"x": [11], "j": pa.array(["[2]"], JSON), "s": ["4"]}), uri, mode="append")
    dataset = lance_sql.open(uri).delete("j = '8'").compact().add_columns({"n": JSON})
    answer = {0: "7", 1: '{"a":1}', 2: '{"z":[1,2]}', 3: "[1]", 10: '{"q":1}', 11: "[2]"}
    for table in (lance.dataset(uri).to_table(), dataset.scan().to_table()):
        assert dict(zip(table["x"].to_pylist(), table["j"].to_pylist(), strict=True)) == answer
        assert table.schema.field("j").type == table.schema.field("n").type == JSON
    plain = dataset.alter_column("j", type=pa.string())
    assert plain.scan().to_table().schema.field("j").type == pa.string()
    with pytest.raises(LanceError, match="is not valid JSON"):
        plain.alter_column("s", type=JSON)
    back = plain.alter_column("j", type=JSON)
    assert back.scan().to_table().equals(lance.dataset(uri).to_table())


def test_filters_see_text_and_indices_are_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    texts = [f'{{"n":{number}}}' if number % 3 else None for number in range(20_000)]
    lance.write_dataset(pa.table({"x": range(20_000), "j": pa.array(texts, JSON)}), uri)
    dataset = lance_sql.open(uri)
    for filter, answer in {
        "j = '{\"n\":17}'": [17],
        "j IN ('{\"n\":4}', '{\"n\":19999}')": [4, 19_999],
        "j LIKE '%:1999_}' AND x < 19993": [19_990, 19_991],
        "j IS NULL AND x < 5": [0, 3],
    }.items():
        assert dataset.scan(["x"], filter=filter).to_table()["x"].to_pylist() == answer
    assert str(dataset.min_max("j").minimum) == '{"n":10000}'
    for kind in ("btree", "zonemap", "bitmap", "bloomfilter"):
        with pytest.raises(LanceError, match="on type json"):
            dataset.create_index("j", kind=kind)
    with pytest.raises(LanceError, match="Only strings"):
        dataset.scan(dictionaries=["j"])


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_engines_see_text(tmp_path: Path, engine: Any) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"x": [1, 2, 3], "j": pa.array(['{"a":[1,2]}', None, "true"], JSON)}), uri)
    query = (
        f"SELECT x, CAST(j AS VARCHAR) AS t FROM '{uri}' WHERE j IS NULL OR j = 'true' OR x = 1 ORDER BY x"
    )
    rows = lance_sql.sql(query, engine=engine).fetchall()
    assert [tuple(row) for row in rows] == [(1, '{"a":[1,2]}'), (2, None), (3, "true")]


def test_duckdb_reads_into_json(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"j": pa.array(['{"a":[1,2]}', None], JSON)}), uri)
    rows = lance_sql.sql(f"SELECT j->'a'->>1 AS second FROM '{uri}'").fetchall()
    assert [tuple(row) for row in rows] == [("2",), (None,)]


def test_binary_values_are_taken_as_well(tmp_path: Path) -> None:
    value = binary_of('{"a":[1]}', tmp_path)
    uri = str(tmp_path / "t.lance")
    field = pa.field("j", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})
    raw = pa.table([pa.array([value, None], pa.large_binary())], schema=pa.schema([field]))
    lance_sql.write(raw, uri)
    assert lance.dataset(uri).to_table()["j"].to_pylist() == ['{"a":[1]}', None]
    damaged = pa.array([value[:-1]], pa.large_binary())
    with pytest.raises(SchemaMismatchError, match="ends before the data"):
        lance_sql.write(pa.table([damaged], schema=pa.schema([field])), uri, "append")
