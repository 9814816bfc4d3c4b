"""The syntax tree of a statement, parsed once.

sqlglot reads the statements of both engines, changes included, in 1 to 3 ms, and says where names are in the
text. DuckDB's own parser, which writes its trees as JSON, takes as long, only reads queries, and would have
to be loaded for DataFusion.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lance_engine.base import load

from lance_sql.text.explained import query_position
from lance_sql.text.literals import literal_edits, parameter_edits
from lance_sql.text.statement import Statement, once_per_statement
from lance_sql.text.tokens import Token

if TYPE_CHECKING:
    from sqlglot import exp

#: Strings that the parser understands in another way than engines.
_OTHER_STRINGS: Final = frozenset({"dollar", "escaped"})
#: Stands for a long list of constants: parsing each takes longer than the statement.
LONG_LIST: Final = "lance_long_list"


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of a statement; `edits` were made in its text before it was parsed."""

    root: exp.Expression
    statement: Statement
    edits: tuple[tuple[int, int, str], ...]

    def place(self, name: exp.Expression) -> tuple[int, int] | None:
        """The characters of an identifier in the text; None if unknown."""
        start, end = name.meta.get("start"), name.meta.get("end")
        if start is None or end is None:
            return None
        moved = 0
        for begin, stop, replacement in self.edits:
            if begin + moved >= start:
                break
            moved += len(replacement) - (stop - begin)
        return start - moved, end + 1 - moved

    def function_at(self, start: int) -> exp.Expression | None:
        """The call of a function whose name begins at a character of the text."""
        from sqlglot import exp

        functions = self.root.find_all(exp.Anonymous)
        return next((call for call in functions if (self.place(call) or (None,))[0] == start), None)

    def condition(self, node: exp.Expression, source: str, columns: Collection[str]) -> exp.Expression | None:
        """A copy of a condition on the rows of one table, without the qualifier `source`.

        Lists are as they were written. None if `source` may also be a struct among the `columns`.
        """
        from sqlglot import exp

        if source.lower() in map(str.lower, columns) and any(
            column.table for column in node.find_all(exp.Column)
        ):
            return None

        copied = node.copy()
        lists = {token.start: token.text for token in self.statement.tokens if token.kind == "constants"}
        for column in list(copied.find_all(exp.Column)):
            place = self.place(column.this) if column.name == LONG_LIST else None
            if place is not None:
                column.replace(exp.Var(this=lists[place[0]]))
            elif column.table.lower() == source.lower() and not column.args.get("db"):
                column.set("table", None)  # other qualifiers are structs
        return copied

    def written(self, function: exp.Expression) -> str:
        """The name of a function as the text has it: the parser gives some the same meaning as others."""
        place = self.place(function)
        return "" if place is None else self.statement.original[place[0] : place[1]].lower()


@once_per_statement
def tree_of(statement: Statement) -> Tree | None:
    """The tree of a statement; None for those that the parser does not understand as engines do."""
    tokens = statement.tokens
    if not tokens or any(token.kind in _OTHER_STRINGS for token in tokens):
        return None
    load("sqlglot")
    from sqlglot import errors, exp, parse_one

    edits = sorted([*parameter_edits(tokens), *literal_edits(tokens), *_long_lists(tokens)])
    text = statement.original
    for start, end, replacement in reversed(edits):
        text = text[:start] + replacement + text[end:]
    with quiet():
        try:
            root: Any = parse_one(text, dialect="duckdb")
        except (errors.SqlglotError, RecursionError):
            return None
    return None if isinstance(root, exp.Command) else Tree(root, statement, tuple(edits))


@once_per_statement
def query_tree(statement: Statement) -> Tree | None:
    """As `tree_of`, but for a statement that explains a query, the tree of this query."""
    tokens = statement.tokens
    if not tokens or tokens[0].upper != "EXPLAIN":
        return tree_of(statement)
    position = query_position(tokens)
    begin = tokens[position].start if position < len(tokens) else 0
    tree = tree_of(Statement(statement.original[begin:]))
    if tree is None:
        return None
    edits = ((begin + start, begin + end, text) for start, end, text in tree.edits)
    return Tree(tree.root, statement, ((0, begin, ""), *edits))


def _long_lists(tokens: list[Token]) -> Iterator[tuple[int, int, str]]:
    return ((token.start, token.end, LONG_LIST) for token in tokens if token.kind == "constants")


@contextmanager
def quiet() -> Iterator[None]:
    """Without the parser's warnings about unknown statements."""
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
