"""Parts of pushdowns that hold whatever a statement is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from lance_engine.dataset import DatasetVersion
from lance_engine.expr.tree import Column
from lance_engine.io import MemoryStore
from lance_engine.write import write_dataset

from lance_sql.engines.key_conditions import KeyPath
from lance_sql.pushdown import conditions
from lance_sql.pushdown.coded_tables import CodedTables
from lance_sql.pushdown.join_filters import _has_keys
from lance_sql.pushdown.metadata_aggregates import _as_type
from lance_sql.pushdown.planning import PushdownPlanner
from lance_sql.pushdown.top_n import _nulls_first
from lance_sql.text.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM t ORDER BY a NULLS FIRST LIMIT 3", True),
        ("SELECT a FROM t ORDER BY a DESC NULLS LAST OFFSET 1", False),
        ("SELECT a FROM t ORDER BY a, b NULLS FIRST LIMIT 3", None),
    ],
)
def test_where_the_nulls_of_the_first_key_are(text: str, expected: bool | None) -> None:
    assert _nulls_first(tokenize(text)) is expected


def test_values_get_the_type_of_the_column() -> None:
    assert _as_type(pa.array([1]), pa.int8()).type == pa.int8()
    same = pa.array([1])
    assert _as_type(same, pa.int64()) is same


@pytest.mark.parametrize(
    ("kind", "other", "expected"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.int32(), pa.uint64(), False),
        (pa.date32(), pa.date32(), True),
        (pa.date32(), pa.int32(), False),
        (pa.string(), pa.string(), False),
    ],
)
def test_keys_are_whole_numbers_or_dates(kind: pa.DataType, other: pa.DataType, expected: bool) -> None:
    datasets = {
        name: DatasetVersion(write_dataset(pa.table({"k": pa.nulls(1, one)}), MemoryStore()))
        for name, one in (("a", kind), ("b", other))
    }
    assert _has_keys(KeyPath("a", "k", "b", "k"), datasets) is expected


class Engine:
    """Notes the tables that it has."""

    def __init__(self, *, verify: bool = False) -> None:
        self.tables: set[str] = set()
        self.pushdowns = SimpleNamespace(verify=verify)

    def register(self, name: str, *_: object) -> None:
        self.tables.add(name)

    def unregister(self, name: str) -> None:
        self.tables.remove(name)


class Added:
    """Columns that are added to a dataset."""

    def __init__(self, of: str) -> None:
        self.of = of


def test_coded_tables_are_kept_while_results_use_them() -> None:
    engine: Any = Engine()
    tables = CodedTables(engine)
    old, new, added = SimpleNamespace(), SimpleNamespace(), Added("t")
    first = tables.table(old, added, ())  # type: ignore[arg-type]
    assert tables.table(old, added, ()) == first  # type: ignore[arg-type]
    tables.use(first)
    second = tables.table(new, added, ())  # type: ignore[arg-type]
    assert engine.tables == tables.names() == {first, second}
    tables.release(first)
    tables.table(SimpleNamespace(), Added("u"), ())  # type: ignore[arg-type]
    assert {first, second} <= engine.tables, "neither of the same table, nor too many"
    newest = tables.table(SimpleNamespace(), added, ())  # type: ignore[arg-type]
    assert {first, second}.isdisjoint(engine.tables)
    assert newest in engine.tables


@pytest.mark.parametrize(("parameters", "verify", "known"), [((), False, True), ((1,), False, False), ((), True, False)])  # fmt: skip  # noqa: E501
def test_answers_are_known_without_parameters_and_verification(
    parameters: tuple[int, ...], verify: bool, known: bool
) -> None:
    planner = PushdownPlanner(Engine(verify=verify))  # type: ignore[arg-type]
    planner.metadata_aggregates = SimpleNamespace(known=lambda plan, engine: "answer")  # type: ignore[assignment]
    asked: Any = SimpleNamespace(parameters=parameters, plan=None)
    assert planner.known(asked) == ("answer" if known else None)


def test_explanations_name_the_rules_that_do_something() -> None:
    rules = [SimpleNamespace(name=name, described=lambda asked, text=text: text)
             for name, text in (("one", "reads less"), ("other", None))]  # fmt: skip
    planner: Any = SimpleNamespace(rules=rules)
    assert PushdownPlanner.described(planner, None) == ["one  reads less"]  # type: ignore[arg-type]


COLUMNS = {"s": Column(("s",), pa.string()), "n": Column(("n",), pa.int64())}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("s NOT LIKE 'a%'", True),
        ("s ILIKE 'a%'", True),
        ("s NOT ILIKE 'a%'", False),
        ("NOT s ILIKE 'a%'", False),
        ("s IN ('a', 'b')", True),
        ("s IN (SELECT s FROM t)", False),
        ("n BETWEEN 1 AND 3", True),
        ("n BETWEEN SYMMETRIC 3 AND 1", False),
    ],
)
def test_conditions_that_are_understood(condition: str, expected: bool) -> None:
    tree: Any = SimpleNamespace(written=lambda node: "")
    reader = conditions._Reader(tree, lambda node: COLUMNS[node.name], (), False)
    node = sqlglot.parse_one(condition, dialect="duckdb")
    if expected:
        assert reader.condition(node, exact=False) is not None
    else:
        with pytest.raises(conditions._NotUnderstoodError):
            reader.condition(node, exact=False)
