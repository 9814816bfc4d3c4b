"""Structs that engines and files hold in ways of their own: packed ones, and structs of structs."""

from __future__ import annotations

import random

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.errors import SqlError


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_packed_structs_are_read_as_one(version, engine, tmp_path):
    """Their fields have no columns of their own: read by a path, they gave values of other fields."""
    packed = {"packed": "true", "lance-encoding:packed": "true"}
    numbers = list(range(3_000))
    st = pa.array(
        [{"a": n, "b": n / 2, "c": -n} for n in numbers],
        pa.struct([("a", pa.int64()), ("b", pa.float32()), ("c", pa.int32())]),
    )
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("st", st.type, False, packed)])
    table = pa.table([pa.array(numbers), st], schema=schema)
    dataset = lance_sql.write(table, tmp_path / "t.lance", data_storage_version=version)
    assert dataset.scan(columns=["st.c", "st.a"]).to_table().to_pydict() == {
        "st.c": [-n for n in numbers],
        "st.a": numbers,
    }
    with lance_sql.connect(tmp_path, engine=engine) as session:
        text = "SELECT sum(st.c) AS s, count(st.a) AS n FROM t WHERE st.b > 10"
        assert session.sql(text).fetchone() == (-sum(numbers[21:]), len(numbers) - 21)


def test_structs_of_structs_are_joined(tmp_path):
    """Arrays of them that begin within their buffers make DataFusion panic."""
    rows = 20_000
    st = [None if n % 5 == 0 else {"n": n, "inner": {"x": n} if n % 7 else None} for n in range(rows)]
    kind = pa.struct([("n", pa.int64()), ("inner", pa.struct([("x", pa.int64())]))])
    lance_sql.write(pa.table({"id": range(rows), "st": pa.array(st, kind)}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        text = "SELECT count(*), sum(y.st.inner.x) FROM t x JOIN t y ON x.id = y.st.n"
        known = [value for value in st if value is not None]
        total = sum(value["n"] for value in known if value["inner"] is not None)
        assert session.sql(text).fetchone() == (len(known), total)


def structs_of_structs(rows, text):
    """A table of `rows` rows; in each, a struct of structs with a string."""
    inner = pa.StructArray.from_arrays([pa.array(range(rows)), pa.array([text] * rows)], ["x", "s"])
    st = pa.StructArray.from_arrays([pa.array(range(rows)), inner], ["n", "inner"])
    return pa.table({"id": range(rows), "k": [n % 100 for n in range(rows)], "st": st})


def test_structs_of_structs_beside_a_tested_column_are_queried(engine, tmp_path):
    """Rows that pass are decoded in parts, which are slices of a column: engines fail on some."""
    rows, last = 520_000, 638
    rng = random.Random(1)
    days = [None if rng.random() < 0.01 else n * 700 // rows for n in range(rows)]
    table = structs_of_structs(rows, "x").append_column("day", pa.array(days, pa.int32()))
    lance.write_dataset(table.select(["day", "st"]), tmp_path / "t.lance", data_storage_version="2.1")
    found = [n for n, day in enumerate(days) if day is not None and day >= last]
    with lance_sql.connect(tmp_path, engine=engine) as session:
        structs = session.sql(f"SELECT st FROM t WHERE day >= {last}").arrow()["st"].to_pylist()
    assert sorted(st["inner"]["x"] for st in structs) == found
    assert all(st["n"] == st["inner"]["x"] for st in structs)


@pytest.mark.parametrize("options", [{}, {"limit": 100}, {"filter": "k > 3"}, {"filter": "st.n >= 5"}])
def test_scans_with_an_offset_give_structs_of_structs_to_engines(options, tmp_path):
    dataset = lance_sql.write(structs_of_structs(5_000, "x"), tmp_path / "t.lance")
    expected = dataset.scan(**options | {"limit": None}).to_table().slice(7, options.get("limit"))
    scan = dataset.scan(offset=7, **options)
    assert scan.to_table() == expected
    with duckdb.connect() as session:
        session.register("scan", scan)
        rows = session.execute("SELECT id, st.n, st.inner.x FROM scan ORDER BY id").fetchall()
    assert rows == [(n, n, n) for n in expected["id"].to_pylist()]


def test_slices_of_structs_within_structs_and_fixed_size_lists_are_registered(engine, tmp_path):
    """DataFusion cannot import slices of these."""
    inner = pa.array([None if n % 5 == 0 else {"w": n % 2 == 0} for n in range(20_000)])
    columns = {
        "st": pa.StructArray.from_arrays([inner, pa.array(range(20_000))], ["z", "n"]),
        "fl": pa.FixedSizeListArray.from_arrays(inner, 1),
    }
    columns["deep"] = pa.StructArray.from_arrays([columns["fl"]], ["l"])
    rows = pa.table(columns).slice(101, 18_001)
    with lance_sql.connect(tmp_path, engine=engine) as session:
        session.register("r", rows)
        assert session.sql("SELECT * FROM r").arrow().to_pylist() == rows.to_pylist()
        kept = [row for row in rows.to_pylist() if row["st"]["z"] and row["st"]["z"]["w"]]
        assert session.sql("SELECT * FROM r WHERE st['z']['w'] ORDER BY st['n']").arrow().to_pylist() == kept
        session.register("none", rows.slice(0, 0))
        assert session.sql("SELECT count(*) FROM none").fetchone() == (0,)
        rows = rows.drop_columns("deep")  # not stored
        kept = [{name: row[name] for name in rows.column_names} for row in kept]
        lance_sql.write(rows, tmp_path / "t.lance", data_storage_version="2.2")
        assert session.sql("SELECT * FROM t WHERE st['z']['w'] ORDER BY st['n']").arrow().to_pylist() == kept


def test_a_panic_of_datafusion_is_an_error(tmp_path, monkeypatch):
    class PanicException(BaseException):
        pass

    def panics(*_, **__):
        raise PanicException("assertion failed")

    lance_sql.write(pa.table({"id": [1]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        monkeypatch.setattr("datafusion.SessionContext.sql", panics)
        with pytest.raises(SqlError, match="DataFusion failed: assertion failed"):
            session.sql("SELECT * FROM t").fetchall()
        monkeypatch.undo()
        assert session.sql("SELECT * FROM t").fetchall() == [(1,)]
