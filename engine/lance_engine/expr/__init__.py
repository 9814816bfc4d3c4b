"""The filter tree: its readers (`parse_sql`, `from_arrow`) and its evaluators over rows and statistics."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.expr.build import conjunction
    from lance_engine.expr.constants import integer_scalar, python_scalar
    from lance_engine.expr.external import provide as provide_functions
    from lance_engine.expr.from_arrow import from_arrow as arrow_filter
    from lance_engine.expr.from_arrow import pickled
    from lance_engine.expr.from_spark import SparkFilter
    from lance_engine.expr.from_spark import from_spark as spark_filter
    from lance_engine.expr.from_sql import parse_sql
    from lance_engine.expr.interpreted_parser import duckdb_parser
    from lance_engine.expr.patterns import implied, matching
    from lance_engine.expr.render import literal as literal_text
    from lance_engine.expr.sql_names import SQL_NAMES, SQL_TYPES
    from lance_engine.expr.total_order import in_total_order
    from lance_engine.expr.tree import (
        Column,
        Comparison,
        Function,
        In,
        IsNull,
        Literal,
        Match,
        Node,
        SummarizedIn,
        columns_of,
        conjuncts,
        walk,
    )
    from lance_engine.expr.value_types import has_zone, is_text
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "expr.build": "conjunction",
            "expr.constants": "integer_scalar python_scalar",
            "expr.external": "provide=provide_functions",
            "expr.from_arrow": "from_arrow=arrow_filter pickled",
            "expr.from_spark": "SparkFilter from_spark=spark_filter",
            "expr.from_sql": "parse_sql",
            "expr.interpreted_parser": "duckdb_parser",
            "expr.patterns": "implied matching",
            "expr.render": "literal=literal_text",
            "expr.sql_names": "SQL_NAMES SQL_TYPES",
            "expr.total_order": "in_total_order",
            "expr.tree": (
                "Column Comparison Function In IsNull Literal Match Node SummarizedIn "
                "columns_of conjuncts walk"
            ),
            "expr.value_types": "has_zone is_text",
        },
    )
