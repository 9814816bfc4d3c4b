"""The predicate nodes that DuckDB offers to a source: filtering with them as trees, answers stay DuckDB's."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from duckdb._sources import ArrowScanSource, nodes
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError
from lance_engine.expr.evaluate import evaluate
from test_pushed_filters import CONDITIONS, DUCKDB_ONLY, TABLE

from lance_sql.engines.duckdb.conditions import from_duckdb


class Source(ArrowScanSource):
    """Accepts every predicate that reads as a tree, and filters with it."""

    def __init__(self, table: pa.Table) -> None:
        self.obj = self._table = table.combine_chunks()
        self.accepted: list[str] = []

    def __arrow_c_schema__(self) -> object:
        return self._table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def rows(self) -> int:
        return len(self._table)

    def accepts(self, predicate: nodes.Node) -> bool:
        self.accepted.append(str(from_duckdb(predicate, self._table.schema)))
        return True

    def stream(self, columns: list[int] | None, filters: list[nodes.Node]) -> tuple[object, bool]:
        table = self._table
        for predicate in filters:
            truth = evaluate(from_duckdb(predicate, table.schema), table.combine_chunks().to_batches()[0])
            table = table.filter(truth) if len(table) else table
            if not len(table):
                break
        table = table if columns is None else table.select(columns)
        return table.__arrow_c_stream__(), columns is not None


@pytest.mark.parametrize("condition", [text for text, _ in CONDITIONS + DUCKDB_ONLY])
def test_accepted_predicates(condition: str) -> None:
    source = Source(TABLE)
    query = f"SELECT id FROM {{}} WHERE {condition} ORDER BY id"
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("ours", source)
        con.register("theirs", TABLE)
        assert con.execute(query.format("ours")).fetchall() == con.execute(query.format("theirs")).fetchall()
    never_offered = ("bo", "NOT bo", "s LIKE 'a%'", "ms >= TIMESTAMP '1970-01-01 00:00:00'")
    assert bool(source.accepted) == (condition not in never_offered), source.accepted


def test_long_chains_do_not_recurse() -> None:
    node = equal = nodes.Binary("=", nodes.Col(("i",)), nodes.Lit(0, "INTEGER"))
    for value in range(1, 3000):
        node = nodes.Binary("OR", node, nodes.Binary("=", nodes.Col(("i",)), nodes.Lit(value, "INTEGER")))
    assert equal is not node
    assert str(from_duckdb(node, TABLE.schema)) == " OR ".join(f"i = {value}" for value in range(3000))


def test_what_is_declined() -> None:
    column, constant = nodes.Col(("i",)), nodes.Lit(1, "INTEGER")
    declined = [
        nodes.Binary("~", column, constant),
        nodes.Binary("=", column, column),
        nodes.Binary("=", constant, constant),
        nodes.Binary("=", column, nodes.Lit("x", "VARCHAR")),
        nodes.Binary("=", column, nodes.Lit([1], "INTEGER[]")),
        constant,
    ]
    for node in declined:
        with pytest.raises(InvalidFilterError):
            from_duckdb(node, TABLE.schema)
    with pytest.raises(ColumnNotFoundError):
        from_duckdb(nodes.Binary("=", nodes.Col(("nope",)), constant), TABLE.schema)


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), pa.string(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("values", [[7, 5, 7], [300, 5, -1], [None, 5], [5], [1 << 63, 3], []])
def test_lists_of_like_constants_become_the_tree_of_single_ones(
    kind: pa.DataType, values: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lance_sql.engines.duckdb import conditions as module

    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        values = [None if value is None else str(value) for value in values]
    schema = pa.schema([pa.field("a", kind)])
    operand = type("Col", (), {"parts": ("a",)})()
    literals = [type("Lit", (), {"value": value, "type": "BIGINT"})() for value in values]
    node = type("In", (), {"operand": operand, "values": literals})()
    found = module.from_duckdb(node, schema)
    monkeypatch.setattr(module, "_alike", lambda *_: None)
    expected = module.from_duckdb(node, schema)
    assert found == expected
    assert str(found) == str(expected)
