"""The filter tree: its readers (`parse_sql`, `from_arrow`) and its evaluators over rows and statistics."""

from lance_engine.expr.evaluate import evaluate, evaluate_value
from lance_engine.expr.from_arrow import from_arrow
from lance_engine.expr.from_sql import parse_sql, parse_value
from lance_engine.expr.statistics import ColumnStatistics, ZoneMatch, match_zones
from lance_engine.expr.tree import Node, columns_of, conjuncts

__all__ = [
    "ColumnStatistics",
    "Node",
    "ZoneMatch",
    "columns_of",
    "conjuncts",
    "evaluate",
    "evaluate_value",
    "from_arrow",
    "match_zones",
    "parse_sql",
    "parse_value",
]
