"""Unusual arguments of searches: correct rows or a clear error, in Python and in SQL."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from engine_versions import runs_lateral
from lance_engine.errors import LanceError
from vector_tables import clustered, vector_array

import lance_sql
import lance_sql.datafusion
import lance_sql.duckdb
from lance_sql.cli.app import app

if TYPE_CHECKING:
    from conftest import ObjectStore

ROWS, DIM = 300, 8
QUERY = [0.25] * DIM
#: Tables, and how many rows a search for 10 finds in them.
FOUND = {"plain": 10, "IVF_PQ": 10, "IVF_HNSW_SQ": 10, "empty": 0, "deleted": 0, "nulls": 0}


def _build(folder: str, **options: Any) -> None:
    table = pa.table(
        {
            "id": range(ROWS),
            "v": vector_array(clustered(ROWS, DIM)),
            "text": [f"apple {row % 7}" for row in range(ROWS)],
        }
    )
    lance_sql.write(table, f"{folder}/plain.lance", **options)
    for kind, more in (("IVF_PQ", {"num_sub_vectors": 2}), ("IVF_HNSW_SQ", {})):
        ds = lance_sql.write(table, f"{folder}/{kind}.lance", **options)
        ds.create_index("v", kind, num_partitions=1, **more).create_index("text", "INVERTED")
    lance_sql.write(table.slice(0, 0), f"{folder}/empty.lance", **options)
    ds = lance_sql.write(table, f"{folder}/deleted.lance", **options)
    ds.create_index("v", "IVF_FLAT").create_index("text", "INVERTED").delete("true")
    nothing = {name: pa.nulls(20, table.schema.field(name).type) for name in ("v", "text")}
    lance_sql.write(pa.table({"id": range(20), **nothing}), f"{folder}/nulls.lance", **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("odd"))
    _build(found)
    return found


#: Arguments of `nearest`, and the error for each; None if it is valid.
NEAREST: list[tuple[dict[str, Any], str | None]] = [
    ({"k": 0}, "k must be a positive"),
    ({"k": -1}, "k must be a positive"),
    ({"k": 1.5}, "k must be a positive"),
    ({"k": "3"}, "k must be a positive"),
    ({"k": None}, "k must be a positive"),
    ({"k": True}, "k must be a positive"),
    ({"query": [math.nan] * DIM}, "NaN or null"),
    ({"query": [None] * DIM}, "NaN or null"),
    ({"query": [math.inf] * DIM}, "infinite or too large"),
    ({"query": [1e300] * DIM}, "infinite or too large"),
    ({"query": []}, "0 dimensions"),
    ({"query": [1.0, 2.0]}, "2 dimensions"),
    ({"query": 3.0}, "dimensions; pass one vector"),
    ({"query": "abc"}, "must be a vector"),
    ({"query": [1j] * DIM}, "must be a vector"),
    ({"query": [QUERY, [1.0]]}, "must be a vector"),
    ({"query": None}, "is null"),
    ({"query": np.zeros((0, DIM))}, "No query vector"),
    ({"query": [0.0] * DIM}, None),
    ({"column": "nope"}, "not found"),
    ({"column": "id"}, "expected vectors"),
    ({"column": None}, "by name"),
    ({"metric": "nope"}, "Unknown metric"),
    ({"metric": "hamming"}, "not supported for vectors"),
    ({"nprobes": 0}, "nprobes must be a positive"),
    ({"nprobes": -3}, "nprobes must be a positive"),
    ({"nprobes": 10**30}, None),
    ({"nprobes": np.int64(2)}, None),
    ({"minimum_nprobes": 3, "maximum_nprobes": 2}, "must not exceed"),
    ({"refine_factor": 0}, "refine_factor must be a positive"),
    ({"refine_factor": 10**30}, None),
    ({"ef": 2}, "must be at least"),
    ({"ef": 2**70}, None),
    ({"lower": math.nan}, "bound must be a number"),
    ({"upper": "a"}, "bound must be a number"),
    ({"upper": True}, "bound must be a number"),
    ({"lower": -math.inf, "upper": math.inf}, None),
    ({"filter": "nope = 1"}, "not found"),
    ({"filter": "id ="}, "not valid SQL"),
    ({"filter": ""}, "empty"),
    ({"filter": 5}, "SQL text or a pyarrow expression"),
    ({"columns": ["nope"]}, "not found"),
    ({"columns": "id"}, "list of names"),
    ({"columns": ["id", "id"]}, None),
    ({"columns": []}, None),
    ({"use_index": "no"}, "True or False"),
    ({"fast_search": 1}, "True or False"),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("arguments", "wrong"), NEAREST, ids=lambda value: str(value)[:40])
def test_vectors(folder: str, arguments: dict[str, Any], wrong: str | None) -> None:
    for name, rows in FOUND.items():
        ds = lance_sql.open(f"{folder}/{name}.lance")
        asked = {"column": "v", "query": QUERY, **arguments}
        if wrong is None:
            assert ds.nearest(**asked).num_rows == rows
        else:
            with pytest.raises(LanceError, match=wrong):
                ds.nearest(**asked)


@pytest.mark.parametrize("rows", [ROWS, 10**9, 2**63, 2**70])
def test_more_rows_than_there_are(folder: str, rows: int) -> None:
    for name, found in FOUND.items():
        ds = lance_sql.open(f"{folder}/{name}.lance")
        every = ROWS if found else 0
        assert ds.nearest("v", QUERY, rows, columns=["id"]).num_rows == every
        assert ds.search("apple", "text", rows, columns=["id"]).num_rows == every
        assert ds.hybrid("v", QUERY, "apple", "text", rows, columns=["id"]).num_rows == every
        nothing = ds.nearest("v", QUERY, rows, lower=5, upper=1, columns=["id"])
        assert nothing.num_rows == 0


SEARCH: list[tuple[dict[str, Any], str | None]] = [
    ({"k": 0}, "k must be a positive"),
    ({"k": -1}, "k must be a positive"),
    ({"k": 1.5}, "k must be a positive"),
    ({"query": None}, "Expected a query"),
    ({"query": 3}, "Expected a query"),
    ({"query": ["apple"]}, "Expected a query"),
    ({"query": "\ud800"}, "surrogate"),
    ({"query": "apple " * 5000}, None),
    ({"column": "nope"}, "not found"),
    ({"column": "id"}, "expected texts"),
    ({"column": 3}, "by name"),
    ({"column": []}, "no column"),
    ({"column": ["text", "text"]}, None),
    ({"filter": "nope = 1"}, "not found"),
    ({"columns": ["nope"]}, "not found"),
    ({"use_index": "no"}, "True or False"),
    ({"analysis": 5}, "dictionary of options"),
    ({"analysis": {"nope": 1}}, "unknown: nope"),
    ({"analysis": {"base_tokenizer": 5}}, "must be a name"),
    ({"analysis": {"language": "Klingon"}}, "Unknown stemming language"),
    ({"analysis": {"custom_stop_words": 5}}, "list of words"),
]


@pytest.mark.parametrize(("arguments", "wrong"), SEARCH, ids=lambda value: str(value)[:40])
def test_words(folder: str, arguments: dict[str, Any], wrong: str | None) -> None:
    for name, rows in FOUND.items():
        ds = lance_sql.open(f"{folder}/{name}.lance")
        asked = {"query": "apple", "column": "text", **arguments}
        if wrong is None:
            assert ds.search(**asked).num_rows == rows
        else:
            with pytest.raises(LanceError, match=wrong):
                ds.search(**asked)


def test_texts_without_words(folder: str) -> None:
    for name in FOUND:
        for text in ("", "  ", "\0", "nowhere"):
            assert lance_sql.open(f"{folder}/{name}.lance").search(text, "text").num_rows == 0


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"alpha": 2}, "between 0 and 1"),
        ({"alpha": math.nan}, "between 0 and 1"),
        ({"oversample": 0}, "oversample must be a positive"),
        ({"oversample": 10**30}, None),
        ({"vector": [QUERY, QUERY]}, "takes one vector"),
        ({"vector": None}, "is null"),
        ({"query": None}, "Expected a query"),
        ({"columns": "id"}, "list of names"),
    ],
    ids=str,
)
def test_both(folder: str, arguments: dict[str, Any], wrong: str | None) -> None:
    for name, rows in FOUND.items():
        ds = lance_sql.open(f"{folder}/{name}.lance")
        asked = {"vector_column": "v", "vector": QUERY, "query": "apple", "column": "text", **arguments}
        if wrong is None:
            assert ds.hybrid(**asked).num_rows == rows
        else:
            with pytest.raises(LanceError, match=wrong):
                ds.hybrid(**asked)


def _vectors(more: str = "", query: str = str(QUERY), column: str = "'v'") -> str:
    return f"SELECT id FROM lance_vector_search({{0}}, {column}, {query}{more})"


def _words(words: str = "'apple'", more: str = "") -> str:
    return f"SELECT id FROM lance_fts({{0}}, 'text', {words}{more})"


#: Statements over a table, and what finds them wrong or how many rows they have.
STATEMENTS: list[tuple[str, str | int]] = [
    (_vectors(), 10),
    (_vectors(", k := 2 + 3"), 5),
    (_vectors(", k := 0"), "k must be a positive"),
    (_vectors(", k := NULL"), "k must be a positive"),
    (_vectors(", k := 'a'"), "k must be a positive"),
    (_vectors(", k := 100000000000000000000000"), ROWS),
    (_vectors(", k := 1, k := 2"), "twice"),
    (_vectors(", 3, k := 2"), "twice"),
    (_vectors(", nprobes := 3, nprobs := 2"), "twice"),
    (_vectors(", nprobs := 0"), "nprobes must be a positive"),
    (_vectors(", nprobs := 1000000000000"), 10),
    (_vectors(", ef := 2"), "must be at least"),
    (_vectors(", lower := 5, upper := 1"), 0),
    (_vectors(", metric := 'nope'"), "Unknown metric"),
    (_vectors(", filter := 'nope = 1'"), "not found"),
    (_vectors(", filter := 5"), "SQL text or a pyarrow expression"),
    (_vectors(", columns := ['nope']"), "not found"),
    (_vectors(", columns := ['id']"), 10),
    (_vectors(", nope := 1"), "no argument 'nope'"),
    (_vectors(", use_index := 'no'"), "true or false"),
    (_vectors(query="NULL"), "is null"),
    (_vectors(query="[]"), "0 dimensions"),
    (_vectors(query="[1, 2]"), "2 dimensions"),
    (_vectors(query="'abc'"), "must be a vector"),
    (_vectors(query="(SELECT v FROM {0} WHERE id < 0)"), "does not return a vector"),
    (_vectors(query="(SELECT id FROM {0} LIMIT 1)"), "pass one vector"),
    (_vectors(query="(SELECT NULL)"), "returns null"),
    (_vectors(query="(SELECT v, id FROM {0})"), "returns 2 columns"),
    (_vectors(column="'nope'"), "not found"),
    (_vectors(column="NULL"), "by name"),
    (_words(), 10),
    (_words("NULL"), "Expected a query"),
    (_words("3"), "Expected a query"),
    (_words(more=", k := 0"), "k must be a positive"),
    (_words(more=", nprobes := 3"), "no argument 'nprobes'"),
    (
        f"SELECT id FROM lance_hybrid_search({{0}}, 'v', {QUERY}, 'text', 'apple', alpha := 3)",
        "between 0 and",
    ),
    ("SELECT r.id FROM {0} q, LATERAL lance_vector_search({0}, 'v', q.v, k := 2) r WHERE q.id < 3", 6),
    (
        "SELECT r.id FROM {0} q, LATERAL lance_vector_search({0}, 'v', q.id, k := 2) r",
        "a vector for each row",
    ),
    ("SELECT r.id FROM {0} q, LATERAL lance_vector_search({0}, 'v', q.v, k := 0) r", "k must be a positive"),
]

Run = Callable[[str], int]


def _own_duckdb(folder: str) -> Run:
    connection = duckdb.connect()
    lance_sql.duckdb.install(connection)
    return lambda text: len(connection.sql(text).fetchall())


def _own_datafusion(folder: str) -> Run:
    context = datafusion.SessionContext()
    lance_sql.datafusion.install(context)
    return lambda text: context.sql(text).to_arrow_table().num_rows


def _command(folder: str) -> Run:
    def run(text: str) -> int:
        done = CliRunner().invoke(app, ["query", text, "--format", "csv"])
        if done.exit_code:
            assert isinstance(done.exception, SystemExit), done.exception
            assert "Traceback" not in done.output
            raise LanceError(" ".join(done.stderr.split()))
        return len(done.stdout.splitlines()) - 1

    return run


PLACES: dict[str, Callable[[str], Run]] = {
    "duckdb": lambda _: lambda text: lance_sql.sql(text, engine="duckdb").arrow().num_rows,
    "datafusion": lambda _: lambda text: lance_sql.sql(text, engine="datafusion").arrow().num_rows,
    "own duckdb": _own_duckdb,
    "own datafusion": _own_datafusion,
    "command line": _command,
}


def _check(run: Run, table: str, engine: str = "duckdb") -> None:
    for statement, expected in STATEMENTS:
        text = statement.format(table)
        if "LATERAL" in text and not runs_lateral(engine):
            continue
        if isinstance(expected, int):
            assert run(text) == expected, text
            continue
        with pytest.raises(LanceError) as raised:
            run(text)
        assert expected in str(raised.value), text


@pytest.mark.parametrize("place", PLACES)
def test_statements(folder: str, place: str) -> None:
    run = PLACES[place](folder)
    _check(run, f"'{folder}/IVF_PQ.lance'", place.removeprefix("own "))
    for name in ("empty", "deleted", "nulls"):
        for text in (_vectors(), _words()):
            assert run(text.format(f"'{folder}/{name}.lance'")) == 0, name


@pytest.fixture
def by_name(folder: str, engine: str) -> Iterator[Run]:
    with lance_sql.connect(folder, engine=engine) as session:
        yield lambda text: session.sql(text).arrow().num_rows


def test_statements_by_name(by_name: Run, engine: str) -> None:
    _check(by_name, "IVF_PQ", engine)


def test_object_stores(object_store: ObjectStore) -> None:
    folder = object_store.s3("odd")
    _build(folder, storage_options=object_store.options)
    _check(PLACES["duckdb"](folder), f"'{folder}/IVF_PQ.lance'")
    for arguments, wrong in NEAREST:
        ds = lance_sql.open(f"{folder}/IVF_HNSW_SQ.lance", storage_options=object_store.options)
        asked = {"column": "v", "query": QUERY, **arguments}
        if wrong is None:
            assert ds.nearest(**asked).num_rows == 10
        else:
            with pytest.raises(LanceError, match=wrong):
                ds.nearest(**asked)


def test_vectors_of_a_subquery(tmp_path: Path) -> None:
    """Some of them null, or of another length, are told; two are two searches."""
    path = str(tmp_path / "t.lance")
    lists = pa.array([[1.0] * 4, None, [2.0] * 3, [3.0] * 4], pa.list_(pa.float32()))
    vectors = vector_array(clustered(4, 4), np.array([False, True, False, False]))
    lance_sql.write(pa.table({"id": range(4), "v": vectors, "q": lists}), path)
    search = "SELECT * FROM lance_vector_search('{0}', 'v', (SELECT {1} FROM '{0}' WHERE {2}), k := 2)"
    for column, condition in (("v", "true"), ("q", "true"), ("q", "id IN (0, 2)")):
        with pytest.raises(LanceError, match="must be a vector"):
            lance_sql.sql(search.format(path, column, condition)).arrow()
    for column in ("v", "q"):
        found = lance_sql.sql(search.format(path, column, "id IN (0, 3)")).arrow()
        assert found["query_index"].to_pylist() == [0, 0, 1, 1]
    lateral = "SELECT q.id FROM '{0}' q, LATERAL lance_vector_search('{0}', 'v', q.{1}, k := 1) r WHERE {2}"
    assert lance_sql.sql(lateral.format(path, "v", "true")).arrow().num_rows == 3
    assert lance_sql.sql(lateral.format(path, "q", "q.id <> 2")).arrow().num_rows == 2
    with pytest.raises(LanceError, match="one length"):
        lance_sql.sql(lateral.format(path, "q", "true")).arrow()


def test_fields_of_structs(tmp_path: Path) -> None:
    values = [{"a": row, "b": -row, "c": {"d": 2 * row}} for row in range(9)]
    table = pa.table({"v": vector_array(clustered(9, 4)), "st": values, "text": ["fox"] * 9})
    ds = lance_sql.write(table, str(tmp_path / "t.lance"))
    (row,) = ds.search("fox", "text", 1, columns=["st.c.d", "_rowid", "st.a"]).to_pylist()
    assert list(row) == ["st", "_rowid", "_score"]
    assert row["st"] == {"a": 0, "c": {"d": 0}}
    assert ds.nearest("v", [0.0] * 4, 1, columns=["st.b", "st"]).column_names == ["st", "_distance"]
    with pytest.raises(LanceError, match="top-level columns"):
        lance_sql.sql(f"SELECT * FROM lance_fts('{ds.uri}', 'text', 'fox', columns := ['st.a'])").arrow()
