"""Fields of structs are columns of their own for statements that use nothing else of these: the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

import lance_sql
from lance_sql.engines import pushdown
from lance_sql.engines.parts import Parts
from lance_sql.engines.table import EngineTable
from lance_sql.session import lone_fields
from lance_sql.text.lone_fields import field_uses
from lance_sql.text.tokens import tokenize
from lance_sql.types.declared import declared_type

ROWS = 3_000
NEVER = 1 << 60


def _table(version: str) -> pa.Table:
    number = np.random.default_rng(11)

    def nulls() -> pa.Array | None:
        return pa.array(number.random(ROWS + 7) < 0.2)

    def structs(**fields: pa.Array) -> pa.StructArray:
        # Version 2.0 has no null structs.
        mask = None if version == "2.0" else nulls()
        return pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=mask)

    def texts(count: int) -> pa.Array:
        return pa.array([f"text {n}" for n in number.integers(0, count, ROWS + 7)])

    def some(values: Any, kind: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, kind, mask=np.asarray(nulls()))

    inner = structs(
        t=some(texts(5).to_pylist()),
        n=some(number.integers(0, 40, ROWS + 7)),
        d=some(number.integers(0, 9_999, ROWS + 7)).cast(pa.decimal128(25, 2)).cast(pa.decimal128(12, 2)),
        f=some(number.normal(0, 1, ROWS + 7).astype(np.float16)),
        b=some(number.random(ROWS + 7) < 0.5),
    )
    outer = structs(t=texts(30), n=some(np.arange(ROWS + 7)), inner=inner, l=pa.array([[1]] * (ROWS + 7)))
    table = pa.table({"id": np.arange(ROWS + 7), "t": texts(3), "st": outer, "other": structs(x=texts(4))})
    return table.slice(7)


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def stored(request, tmp_path_factory) -> tuple[Path, pa.Table]:
    """A directory with the dataset `e`, of several fragments without some rows, and its rows."""
    place: Path = tmp_path_factory.mktemp("lone")
    table = _table(request.param)
    written = write_dataset(
        table, str(place / "e.lance"), max_rows_per_file=1_100, data_storage_version=request.param
    )
    dataset = DatasetVersion(written).delete("id % 17 = 3")
    return place, dataset.scan().to_table()


FIELDS = (
    "st.t",
    "st['n']",
    "st.inner.t",
    "st.inner.n",
    "st.inner.d",
    "st.inner['f']",
    "st.inner.b",
    "other.x",
)
CONDITIONS = (
    "st.t = 'text 7'", "st.t IN ('text 1', 'text 2', 'none')", "st.inner.t IS NULL", "st['n'] > 2000",
    "st.inner.t IS NOT NULL AND st.inner.n < 5", "NOT (st.inner.t = 'text 1')", "other.x <> 'text 2'",
    "st.inner.t = 'text 1' OR st.t = 'text 3'", "st.inner.d BETWEEN 10 AND 5000", "st.inner.f > 0.5",
    "st.t LIKE 'text 1%'", "st.inner.b",
)  # fmt: skip
SHAPES = (
    "SELECT {a}, {b}, id FROM e WHERE {c} ORDER BY id",
    "SELECT {a} AS first, count(*) FROM e WHERE {c} GROUP BY {a} ORDER BY first NULLS LAST",
    "SELECT max({a}), min({b}), count({a}), count(DISTINCT {b}) FROM e WHERE {c}",
    "SELECT count(*) FROM e AS e2 WHERE {c}",
    "SELECT DISTINCT {a} FROM e WHERE {c} ORDER BY {a} NULLS FIRST LIMIT 5",
    "SELECT {a}, count(*) AS number FROM e GROUP BY {a} HAVING count(*) > 3 ORDER BY number, {a}",
    "SELECT id, CASE WHEN {c} THEN 1 ELSE 0 END AS passes FROM e ORDER BY id DESC, {b}",
)


def _answers(
    session: lance_sql.Connection, statement: str, least: int, patch: pytest.MonkeyPatch
) -> pa.Table:
    patch.setattr(lone_fields, "LEAST_BYTES", least)
    return session.sql(statement).arrow()


@pytest.fixture(scope="module")
def sessions(stored):
    """For each engine, a session for statements over columns, and one for those over structs."""
    place, _ = stored
    found = {
        engine: [lance_sql.connect(place, engine=engine) for _ in range(2)]
        for engine in ("duckdb", "datafusion")
    }
    yield found
    for pair in found.values():
        for session in pair:
            session.close()


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_answers_are_those_of_structs(engine, stored, sessions, data):
    _, table = stored
    a, b = (data.draw(st.sampled_from(FIELDS)) for _ in range(2))
    condition = data.draw(st.sampled_from(CONDITIONS))
    statement = data.draw(st.sampled_from(SHAPES)).format(a=a, b=b, c=condition)
    of_columns, of_structs = sessions[engine]
    with pytest.MonkeyPatch.context() as patch:
        try:
            plain = _answers(of_structs, statement, NEVER, patch)
        except lance_sql.LanceError:
            with pytest.raises(lance_sql.LanceError):
                _answers(of_columns, statement, 0, patch)
            return
        found = _answers(of_columns, statement, 0, patch)
    assert found.column_names == plain.column_names
    assert found.schema.types == plain.schema.types
    assert found.to_pylist() == plain.to_pylist()
    if engine == "duckdb":
        with duckdb.connect() as oracle:
            oracle.register(
                "e", table.cast(pa.schema([f.with_type(declared_type(f.type)) for f in table.schema]))
            )
            assert oracle.sql(statement).to_arrow_table().to_pylist() == found.to_pylist()


def test_strings_are_dictionaries(tmp_path):
    dataset = DatasetVersion(write_dataset(_table("2.2"), str(tmp_path / "e.lance")))
    parts = Parts("e", fields=("st.t", "st.inner.t", "st.inner.d"))
    table = EngineTable(dataset, dictionaries=True, narrow_decimals=True, parts=parts)
    text, inner, decimal = (table.schema.field(name).type for name in parts.fields)
    assert text == inner == pa.dictionary(pa.int32(), pa.string())
    assert decimal == pa.decimal64(12, 2)
    (batch,) = table.scan(parts.fields, run=None).batches()
    assert batch.schema.types == [text, inner, decimal]
    assert batch.column(1).to_pylist() == dataset.scan(["st.inner.t"]).to_table()["st.inner.t"].to_pylist()


def test_conditions_on_fields_are_pushed(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(lone_fields, "LEAST_BYTES", 0)
    monkeypatch.setattr(pushdown, "_SMALL_BYTES", 0)
    write_dataset(_table("2.2"), str(tmp_path / "e.lance"), max_rows_per_file=500)
    with lance_sql.connect(tmp_path, engine=engine) as session:
        result = session.sql("SELECT count(*) FROM e WHERE st.n < 100")
        assert result.arrow().column(0).to_pylist()[0] > 50
        assert result.metrics is not None
        (scan,) = result.metrics["scans"]
    assert "n" in scan["filter"]
    # Zone maps exclude the other fragments.
    assert scan["rows_decoded"] <= 500


def test_fields_that_differ_in_case_stay_in_structs(tmp_path, monkeypatch):
    monkeypatch.setattr(lone_fields, "LEAST_BYTES", 0)
    structs = pa.array([{"a": n, "B": -n, "b": n * n} for n in range(10)])
    write_dataset(pa.table({"st": structs, "ST": structs.field(0)}), str(tmp_path / "f.lance"))
    write_dataset(pa.table({"st": structs}), str(tmp_path / "e.lance"))
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        assert session.sql("SELECT sum(st['b']) AS s FROM e").arrow().to_pylist() == [{"s": 285}]
        assert session.sql("SELECT sum(st['B']) AS s FROM e").arrow().to_pylist() == [{"s": -45}]
        assert session.sql("SELECT sum(st['a']) AS s FROM f").arrow().to_pylist() == [{"s": 45}]


USES = {
    "SELECT st.a FROM t": ["st.a"],
    "SELECT x.st.a, X.st['b'].c FROM t AS x WHERE \"ST\".a > 1;": ["st.a", "st['b'].c", '"ST".a'],
    "SELECT st.a AS a FROM t ORDER BY a": ["st.a"],
    "SELECT upper(st.a) FROM t GROUP BY st.a LIMIT 1": ["st.a", "st.a"],
    "SELECT st.st FROM t": ["st.st"],
    # of an item, not of a column
    "SELECT st.a FROM t ORDER BY a": None,
    "SELECT st.a, 1 FROM t WHERE a = 1": None,
    # as a whole
    "SELECT st.a, st FROM t": None,
    "SELECT other.st.a FROM t": None,
    "SELECT x.t.st.a FROM t": None,
    # other sources
    "SELECT st.a FROM t, u": None,
    "SELECT st.a FROM t JOIN st USING (id)": None,
    "SELECT st.a FROM t x, unnest(y) st": None,
    "SELECT st.a FROM (SELECT st FROM t)": None,
    "WITH st AS (SELECT 1 AS a) SELECT st.a FROM t": None,
    "SELECT st.a FROM t UNION SELECT st.a FROM t": None,
    "SELECT st.a FROM t TABLESAMPLE 10%": None,
    "SELECT st.a FROM t AS x(st)": None,
    "SELECT st.a FROM u": None,
    "SELECT b FROM t": None,
}


@pytest.mark.parametrize("statement", USES)
def test_uses_of_fields(statement):
    found = field_uses(tokenize(statement), "t", {"st"})
    places = USES[statement]
    assert (None if found is None else [statement[use.start : use.end] for use in found]) == places
