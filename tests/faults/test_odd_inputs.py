"""Odd names, metadata, types, numbers and texts work, or raise errors of the library: through every door."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from lance_engine.errors import InvalidArgumentError, InvalidFilterError, LanceError, SchemaMismatchError

import lance_sql
from lance_sql.cli.app import app
from lance_sql.report.page import report_page


def deep(levels: int, wrap: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    kind = pa.int8()
    for _ in range(levels):
        kind = wrap(kind)
    return kind


def with_metadata(kind: pa.DataType, metadata: dict[Any, Any]) -> pa.Table:
    return pa.table([pa.nulls(2, kind)], schema=pa.schema([pa.field("x", kind, metadata=metadata)]))


SYSTEM = ("_rowid", "_rowaddr", "_distance", "_score", "_relevance_score", "_rowoffset")
LINEAGE = ("_row_last_updated_at_version", "_row_created_at_version")
NAMES = [
    "",
    "a b",
    'q"q',
    "`x`",
    "a\nb",
    "x" * 300,
    "lance_sql_row",
    "SELECT",
    "$1",
    "?",
    "%s",
    "{0}",
    *SYSTEM,
    *LINEAGE,
]
EXTENSIONS = ("arrow.uuid", "arrow.json", "arrow.bool8", "lance.bfloat16", "geoarrow.wkb", "unknown", "\xff")
METADATA: list[dict[Any, Any]] = [
    {b"k": b"\xff\xfe"},
    {b"\xff": b"x"},
    {"a": "b\0"},
    {"": ""},
    {"ARROW:extension:name": "arrow.fixed_shape_tensor", "ARROW:extension:metadata": "nonsense"},
    {"ARROW:extension:name": "arrow.opaque", "ARROW:extension:metadata": "{"},
    {"lance-encoding:compression": "nonsense"},
    {"lance-encoding:rle-threshold": "nan"},
    {"lance-sql:default": "1+"},
    *({"ARROW:extension:name": name} for name in EXTENSIONS),
]
TYPES = [
    pa.null(),
    pa.float16(),
    pa.decimal128(38, -3),
    pa.decimal256(76, 76),
    pa.binary(0),
    pa.list_(pa.int8(), 0),
    pa.struct([]),
    pa.map_(pa.struct([("a", pa.int8())]), pa.int8()),
    pa.map_(pa.list_(pa.int8()), pa.int8()),
    pa.month_day_nano_interval(),
    pa.timestamp("s", "Nowhere/Land"),
    pa.timestamp("us", "+99:99"),
    pa.duration("s"),
    deep(200, pa.list_),
    deep(200, lambda kind: pa.struct([("a", kind)])),
]
INVALID_TEXT = pa.table({"x": pa.array([b"\xff", b"a"]).view(pa.string())})
FAR = pa.array([2**63 - 1, -(2**63)], pa.int64())
EXTREMES = pa.table(
    {"s": FAR.view(pa.timestamp("s")), "d": FAR.view(pa.duration("s")), "w": FAR.view(pa.date64())}
)
JSON = pa.table({"x": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["[" * 5000 + "]" * 5000, None]))})
TABLES = {
    **{f"name {name[:30]!r}": pa.table({name: [1, 2, None]}) for name in NAMES},
    **{f"field {name[:30]!r}": pa.table({"s": pa.array([{name: 1}, None])}) for name in NAMES[::4]},
    **{f"metadata {held}": with_metadata(pa.int64(), held) for held in METADATA},
    **{f"metadata of text {held}": with_metadata(pa.string(), held) for held in METADATA},
    **{f"type {str(kind)[:60]}": pa.table({"x": pa.nulls(2, kind)}) for kind in TYPES},
    "names that differ in case": pa.table({"a": [1], "A": [2]}),
    "names that are repeated": pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    "metadata of a schema": pa.table({"x": [1]}).replace_schema_metadata({"pandas": "{", b"k": b"\xff"}),
    "text that is not UTF-8": INVALID_TEXT,
    "times beyond the calendar": EXTREMES,
    "deep JSON": JSON,
}


@pytest.fixture(scope="module")
def engines() -> Any:
    with lance_sql.connect(engine="duckdb") as first, lance_sql.connect(engine="datafusion") as second:
        yield [first, second]


def refused(run: Callable[[], Any]) -> None:
    """Run it: errors of the library are fine."""
    with contextlib.suppress(LanceError):
        run()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore")
def test_tables(tmp_path: Path, engines: Any, name: str) -> None:
    path = tmp_path / "t.lance"
    try:
        ds = lance_sql.write(TABLES[name], path)
    except LanceError:
        return
    ds = lance_sql.open(path)
    column = '"' + ds.schema.names[0].replace('"', '""') + '"'
    refused(lambda: ds.scan().to_table())
    refused(lambda: ds.take([0]))
    repr(ds)
    for where in (f"{column} IS NULL", f"{column} = 1", f"{column} > 'a'"):
        refused(lambda: ds.scan(filter=where).to_table())  # noqa: B023
        refused(lambda: ds.count_rows(where))  # noqa: B023
    for engine in engines:
        for text in (
            "SELECT * FROM {0}",
            "SELECT *, _rowid FROM {0}",
            "DESCRIBE {0}",
            "SELECT count(*) FROM {0}",
        ):
            refused(lambda: engine.sql(text.format(f"'{path}'")).fetchall())  # noqa: B023
        refused(lambda: repr(engine.sql(f"SELECT * FROM '{path}'")))  # noqa: B023
        refused(lambda: engine.sql(f"SELECT * FROM '{path}'").pl())  # noqa: B023
        refused(lambda: engine.sql(f"UPDATE '{path}' SET {column} = NULL").fetchall())  # noqa: B023
        refused(lambda: engine.sql(f"DELETE FROM '{path}' WHERE {column} IS NULL").fetchall())  # noqa: B023
    refused(lambda: ds.inspect.columns())
    refused(lambda: report_page(ds))
    found = CliRunner().invoke(app, ["head", str(path)]).exception
    assert found is None or isinstance(found, SystemExit)


TEXTS = [
    "(" * 3000 + "a" + ")" * 3000,
    "NOT " * 5000 + "a = 1",
    "[" * 1000 + "1" + "]" * 1000 + " = a",
    "a" + ".a" * 1000 + " = 1",
    "a = 1" + "0" * 400,
    "a = 1e999",
    "CAST(a AS DECIMAL(99, 1)) = 1",
    "CAST(a AS DECIMAL(0, 0)) = 1",
    "CAST(a AS DECIMAL(x)) = 1",
    "a + INTERVAL '99999999999999999999' DAY > 1",
    "DATE '2020-01-01' + INTERVAL '999999999' YEAR = DATE '2020-01-01'",
    "repeat(s, 1000000000000) = 'x'",
    "left(s, 99999999999999999999) = 'x'",
    "regexp_like(s, '(')",
    "-9223372036854775808 - 1 = a",
    "abs(-9223372036854775808) = 1",
    "s = X'0'",
    "make_array(1, 'a') = [1]",
    "named_struct('a') = s",
    "a IN ()",
    "a BETWEEN 1",
    "end",
    "*",
    "{'a': 1} = a",
    "a => 1",
    "x -> x + 1",
    "",
    "(a, 1) IN ((1, 1))",
    "f(x => 1)",
    "s = 'a\0b'",
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("odd") / "t.lance"
    return lance_sql.write(pa.table({"a": [1, 2], "s": ["x", None]}), path)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:40])
def test_texts(small: Any, engines: Any, text: str) -> None:
    refused(lambda: small.scan(filter=text).to_table())
    refused(lambda: small.count_rows(text))
    refused(lambda: small.update({"a": text}, where="false"))
    for engine in engines:
        refused(lambda: engine.sql(f"SELECT * FROM '{small.uri}' WHERE {text}").fetchall())  # noqa: B023
        refused(lambda: engine.sql(f"DELETE FROM '{small.uri}' WHERE ({text}) AND false").fetchall())  # noqa: B023


@pytest.mark.parametrize("number", [-1, 2**63, 2**200, 1.5, float("nan"), True, "1", b"1", [1], {}], ids=repr)
def test_numbers(small: Any, engines: Any, tmp_path: Path, number: Any) -> None:
    refused(lambda: small.scan(limit=number).to_table())
    refused(lambda: small.scan(offset=number).to_table())
    refused(lambda: small.scan(batch_size=number).to_table())
    refused(lambda: small.scan(columns=number).to_table())
    refused(lambda: small.scan(filter=number).to_table())
    refused(lambda: small.take([number]))
    refused(lambda: small.head(number))
    refused(lambda: small.restore(number))
    refused(lambda: small.delete(number))
    refused(lambda: lance_sql.open(small.uri, version=number))
    refused(lambda: lance_sql.write(pa.table({"a": [1]}), tmp_path / "w.lance", max_rows_per_file=number))
    if not isinstance(number, list | dict):
        refused(lambda: small.update({number: "1"}))
    for engine in engines:
        refused(lambda: engine.sql(f"SELECT * FROM '{small.uri}' LIMIT {number}").fetchall())  # noqa: B023
        refused(lambda: engine.sql(f"SELECT * FROM '{small.uri}' WHERE a = ?", [number]).fetchall())  # noqa: B023


def test_what_errors_say(tmp_path: Path, small: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="is not UTF-8"):
        lance_sql.write(with_metadata(pa.int8(), {b"\xff": b""}), tmp_path / "a.lance")
    with pytest.raises(InvalidArgumentError, match="batch_size must be at least 1, not 0"):
        small.scan(batch_size=0)
    refused(lambda: small.count_rows("round(a, -99999999999) = 0 AND round(a, 99999999999) = 0"))
    with pytest.raises(InvalidFilterError, match="is not a type"):
        small.scan(filter="CAST(a AS DECIMAL(99, 1)) = 1")


def test_values_under_a_wrong_extension_are_those_of_the_storage(tmp_path: Path) -> None:
    """A name of an extension type on a column of another type is metadata without a meaning."""
    schema = pa.schema(
        [pa.field("x", pa.string(), metadata={"ARROW:extension:name": "arrow.uuid", "k": b"\xff"})]
    )
    ds = lance_sql.write(pa.table([["a", None]], schema=schema), tmp_path / "t.lance")
    for found in (ds.to_table(), ds.scan(filter="x = 'a' OR x IS NULL").to_table()):
        assert found["x"].to_pylist() == ["a", None]
    for engine in ("duckdb", "datafusion"):
        assert lance_sql.sql(f"SELECT x FROM '{ds.uri}'", engine=engine).fetchall() == [("a",), (None,)]
    assert ds.schema.field("x").metadata == {b"k": "\ufffd".encode()}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CAST(x AS INT) FROM odd",
        "SELECT error(x) FROM odd",
        "SELECT CAST(x AS DATE) FROM odd",
        "SELECT strptime(x, '%d') FROM odd",
        "SELECT json_extract(x, '$') FROM odd",
        "INSERT INTO kept SELECT CAST(x AS INT) FROM odd",
        "CREATE TABLE made AS SELECT CAST(x AS INT) AS x FROM odd",
        "UPDATE kept SET x = (SELECT max(CAST(x AS INT)) FROM odd)",
    ],
)
def test_messages_that_quote_text_that_is_not_utf8(tmp_path: Path, text: str) -> None:
    """Python cannot decode DuckDB's message: what can be decoded is shown, if Python does not drop it."""
    lance_sql.write(pa.table({"x": [1]}), tmp_path / "kept.lance")
    with lance_sql.connect(tmp_path) as session:
        session.register("odd", INVALID_TEXT)
        with pytest.raises(
            lance_sql.errors.SqlError, match=r"Error: .*\ufffd|Exception without a message.*not UTF-8"
        ):
            session.sql(text).fetchall()
        assert session.sql("FROM kept").fetchall() == [(1,)]
        assert "made" not in session.tables()
