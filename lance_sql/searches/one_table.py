"""Queries over one dataset, by their trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from lance_engine.errors import LanceError

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.syntax.tree import Tree, query_tree
from lance_sql.text.reference import Reference
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import quote

if TYPE_CHECKING:
    from sqlglot import exp


class OneTable(NamedTuple):
    """A SELECT from a single table, which is named in the text from `start` to `end`."""

    tree: Tree
    select: exp.Select
    start: int
    end: int
    #: the name with which the query qualifies columns of the table
    name: str
    #: whether the text gives it that name
    is_renamed: bool

    def replaced(self, name: str) -> Statement:
        """The statement with the table `name` in its place."""
        text = self.tree.statement.original
        alias = "" if self.is_renamed else f" AS {quote(self.name)}"
        return Statement(f"{text[: self.start]}{quote(name)}{alias}{text[self.end :]}")


def only_name(statement: Statement) -> Reference | None:
    """The name of the only table of a statement, perhaps with an alias; None if there are several."""
    names = [reference for reference in statement.references if reference.certain]
    return names[0] if len(names) == 1 and not names[0].choice and not names[0].part else None


def one_table(statement: Statement) -> OneTable | None:
    """The query of a statement, maybe an explained one; None if it is not a SELECT from a single table."""
    from sqlglot import exp

    tree = query_tree(statement)
    if tree is None or not isinstance(tree.root, exp.Select):
        return None
    begin = tree.root.args.get("from_")
    source = None if begin is None else begin.this
    if not isinstance(source, exp.Table) or len(list(tree.root.find_all(exp.Table))) != 1:
        return None
    if any(value for name, value in source.args.items() if name not in ("this", "alias")):
        return None
    place = tree.place(source.this) if isinstance(source.this, exp.Identifier) else None
    if place is None:
        return None
    return OneTable(tree, tree.root, *place, source.alias_or_name, bool(source.alias))


def as_condition(
    table: OneTable, condition: exp.Expression, dataset: SqlDataset, value: Callable[[str], Any]
) -> str | None:
    """The text of a condition on `dataset`, with parameters replaced by values, and unqualified columns.

    None if it is not certain what a column means, or a parameter is not a number, a string or a list of
    these.
    """
    from sqlglot import exp

    copied: Any = table.tree.condition(condition, table.name, dataset.storage_schema.names)
    if copied is None:
        return None
    for parameter in list(copied.find_all(exp.Parameter, exp.Placeholder)):
        try:
            given = value(parameter.sql(dialect="duckdb"))
        except LanceError:
            return None
        items = given if isinstance(given, list) else [given]
        if not all(isinstance(item, (int, float, str)) for item in items):
            return None
        parameter.replace(exp.convert(given))
    return filter_text(copied)


def filter_text(condition: exp.Expression) -> str:
    """A condition as a filter of a scan, which knows the function where DuckDB's writer has an operator."""
    from sqlglot import exp

    copied = condition.copy()
    for contained in list(copied.find_all(exp.ArrayContainsAll)):
        call = exp.Anonymous(this="array_has_all", expressions=[contained.this, contained.expression])
        copied = call if contained is copied else copied
        contained.replace(call)
    text: str = copied.sql(dialect="duckdb")
    return text
