"""Filters and changes are parsed by Python classes, also where sqlglot is compiled."""

from __future__ import annotations

import inspect

import pytest
from lance_engine.expr.interpreted_parser import duckdb_parser
from sqlglot import exp, parser
from sqlglot.dialects.duckdb import DuckDB


@pytest.mark.skipif(not str(parser.__file__).endswith(".py"), reason="sqlglot is compiled here")
def test_the_parser_of_compiled_modules_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "__file__", parser.__file__.replace(".py", ".cpython-311.so"))
    found = duckdb_parser.__wrapped__()
    assert found is not DuckDB.Parser
    assert found.__mro__[1] is not parser.Parser  # which is compiled, too
    assert found.__mro__[1].__name__ == "Parser"
    assert inspect.getsourcefile(found) == inspect.getsourcefile(DuckDB.Parser)
    dialect = DuckDB()
    (tree,) = found(dialect=dialect).parse(dialect.tokenize("SELECT x::INT[] FROM t"), "")
    assert isinstance(tree, exp.Select)
    assert tree.sql("duckdb") == "SELECT CAST(x AS INT[]) FROM t"


def test_the_parser_is_that_of_the_dialect() -> None:
    if str(parser.__file__).endswith(".py"):
        assert duckdb_parser() is DuckDB.Parser
    else:
        assert inspect.getsourcefile(duckdb_parser()) is not None
