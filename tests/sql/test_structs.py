"""Structs that engines and files hold in ways of their own: packed ones, and structs of structs."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_sql


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
