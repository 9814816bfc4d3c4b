"""Queries bound to made-up datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_sql.syntax.scopes import BoundQuery, Names
from lance_sql.syntax.tree import tree_of
from lance_sql.text.statement import Statement


def bound(text: str, tables: Mapping[str, Sequence[str]], names: Names = "any case") -> BoundQuery | None:
    """A query over datasets with these columns, None if it does not parse."""
    tree = tree_of(Statement(text))
    return None if tree is None else BoundQuery(tree, tables, names)
