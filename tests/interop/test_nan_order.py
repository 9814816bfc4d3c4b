"""NaN with a sign: filters order it like the official implementation, and SQL engines by their own rules."""

from __future__ import annotations

from pathlib import Path

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext

import lance_sql

NAN = "arrow_cast('NaN', '{}')"
FILTERS = [
    *(f"f {op} 0" for op in ("<", "<=", "=", ">=", ">", "<>")),
    *(f"NOT f {op} 1" for op in ("<", ">=")),
    *(f"f {op} {NAN}" for op in ("<", "<=", "=", ">=", ">", "<>")),
    *(f"f {op} -({NAN})" for op in ("<", "<=", "=", ">=", ">", "<>")),
    *(f"f {op} g" for op in ("<", "<=", "=", ">=", ">", "<>")),
    "f < CAST('-inf' AS double)",
    "f > CAST('inf' AS double)",
    "f BETWEEN -1 AND 1",
    "f NOT BETWEEN -1 AND 1",
    "f > -1 AND f < 1",
    "f < -1 OR f > 1",
    "f IN (0, 1)",
    f"f IN ({NAN})",
    f"f IN ({NAN}, 1.0)",
    f"f NOT IN ({NAN}, 1.0)",
    f"f IS DISTINCT FROM {NAN}",
    "f IS DISTINCT FROM g",
    "isnan(f)",
    "NOT isnan(f) AND f < 1",
    "f + 1 < 0",
]
WIDTHS = {"float32": (np.uint32, "Float32"), "float64": (np.uint64, "Float64")}


def numbers(kind: str) -> pa.Array:
    """Zones of plain numbers, of some NaN with and without a sign, of both, and of nulls."""
    unsigned, _ = WIDTHS[kind]
    nan = np.array([np.nan], kind).view(unsigned)
    negative = nan | unsigned(1 << (8 * unsigned().itemsize - 1))
    plain = np.array([-np.inf, -2, -1, -0.0, 0.0, 0.5, 1, 3, np.inf], kind)
    parts = [
        plain,
        np.concatenate([plain, nan.view(kind)]),
        np.concatenate([negative.view(kind), plain]),
        np.concatenate([plain, negative.view(kind), nan.view(kind)]),
        negative.view(kind),
        nan.view(kind),
    ]
    zones = [np.resize(part, 10) for part in parts]
    held = pa.array(np.concatenate(zones))
    mask = np.arange(len(held)) % 7 == 6
    return pa.array(held.to_numpy(), mask=mask)


def table(kind: str) -> pa.Table:
    values = numbers(kind)
    order = np.random.default_rng(5).permutation(len(values))
    return pa.table({"id": range(len(values)), "f": values, "g": values.take(pa.array(order))})


def texts(kind: str) -> list[str]:
    return [text.format(WIDTHS[kind][1]) for text in FILTERS]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_scans_and_counts(tmp_path: Path, kind: str, version: str) -> None:
    path = tmp_path / "nan.lance"
    official = lance.write_dataset(
        table(kind), path, max_rows_per_file=10, data_storage_version=version, mode="create"
    )
    ours = lance_sql.open(path)
    lance_sql.write(table(kind), tmp_path / "own.lance", max_rows_per_file=10)
    own = lance_sql.open(tmp_path / "own.lance")
    for text in texts(kind):
        expected = official.to_table(filter=text)["id"].to_pylist()
        for dataset in (ours, own):
            assert dataset.scan(filter=text).to_table()["id"].to_pylist() == expected, text
            assert dataset.count_rows(text) == len(expected), text


@pytest.mark.parametrize("index", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
@pytest.mark.parametrize("writer", ["official", "own"])
def test_an_index_changes_nothing(tmp_path: Path, index: str, writer: str) -> None:
    path = tmp_path / "nan.lance"
    official = lance.write_dataset(table("float64"), path, max_rows_per_file=10)
    # Its answers with an index are not always those without.
    expected = {text: official.to_table(filter=text)["id"].to_pylist() for text in texts("float64")}
    if writer == "official":
        official.create_scalar_index("f", index)
    else:
        lance_sql.open(path).create_index("f", index)
    ours = lance_sql.open(path)
    for text, rows in expected.items():
        assert sorted(ours.scan(filter=text).to_table()["id"].to_pylist()) == rows, text
    with lance_sql.connect() as session:
        session.register("t", ours)
        held = session.sql("SELECT count(*) FROM t WHERE f > 2 OR f IS NULL").fetchall()
    values = table("float64")["f"].to_pylist()
    assert held == [(sum(value is None or value > 2 or value != value for value in values),)]


def test_deletes_and_updates(tmp_path: Path) -> None:
    for number, text in enumerate(texts("float64")[:6]):
        path = tmp_path / f"{number}.lance"
        official = lance.write_dataset(table("float64"), path)
        official.update({"g": "1.0"}, where=text)
        expected = official.to_table(filter="g = 1.0")["id"].to_pylist()
        copy = lance_sql.write(table("float64"), tmp_path / f"copy{number}.lance")
        updated = copy.update({"g": "1.0"}, text)
        assert sorted(updated.scan(filter="g = 1.0").to_table()["id"].to_pylist()) == sorted(expected)
        official.delete(text)
        left = updated.delete(text).scan().to_table()["id"].to_pylist()
        assert sorted(left) == sorted(official.to_table()["id"].to_pylist())


@pytest.mark.parametrize("condition", ["f < 0", "f >= 1", "f < g", "f + 1 < 0", "f BETWEEN -1 AND 9"])
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_engines_keep_their_order(tmp_path: Path, engine: str, condition: str) -> None:
    rows = table("float64")
    held = lance_sql.write(rows, tmp_path / "t.lance", max_rows_per_file=10)
    with lance_sql.connect(engine=engine) as session:
        session.register("t", held)
        found = session.sql(f"SELECT id FROM t WHERE {condition} ORDER BY id").arrow()["id"]
        query = f"SELECT id FROM plain WHERE {condition} ORDER BY id"
        if engine == "duckdb":
            expected = duckdb.from_arrow(rows).query("plain", query).to_arrow_table()["id"].to_pylist()
        else:
            context = SessionContext()
            context.from_arrow(rows, "plain")
            expected = context.sql(query).to_arrow_table()["id"].to_pylist()
        assert found.to_pylist() == expected
        if engine == "duckdb":
            session.sql(f"UPDATE t SET g = 77 WHERE {condition}")
            assert session.sql("SELECT count(*) FROM t WHERE g = 77").fetchall() == [(len(expected),)]
            session.sql(f"DELETE FROM t WHERE {condition} OR g = 77")
            assert session.sql("SELECT count(*) FROM t").fetchall() == [(len(rows) - len(expected),)]


def test_half_floats_follow_the_same_order(tmp_path: Path) -> None:
    wide = table("float32")
    half = wide.set_column(1, "f", wide["f"].cast(pa.float16())).set_column(
        2, "g", wide["g"].cast(pa.float16())
    )
    datasets = [
        lance_sql.write(rows, tmp_path / f"{name}.lance", max_rows_per_file=10)
        for name, rows in (("half", half), ("wide", wide))
    ]
    for text in texts("float32"):
        if "+" not in text:  # half floats are not added
            found, expected = (dataset.scan(filter=text).to_table()["id"] for dataset in datasets)
            assert found.equals(expected), text
