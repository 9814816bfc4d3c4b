"""Makes a query that shows a fault smaller, part by part, as long as it still shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sqlglot
from sqlglot import exp

#: Parts of a query that can be left out.
_OPTIONAL = ("where", "having", "order", "limit", "offset", "distinct", "qualify", "with_", "with", "group")
#: Tries of one reduction.
_MOST = 400


def reduced(statement: str, shows: Callable[[str], bool], *, dialect: str = "duckdb") -> str:
    """As small a form of the statement as shows the fault that `shows` looks for."""
    dialect = "duckdb" if dialect == "duckdb" else "postgres"
    try:
        tree = sqlglot.parse_one(statement, dialect=dialect)
        if not shows(tree.sql(dialect)):
            return statement  # the parser writes it otherwise
    except sqlglot.errors.SqlglotError:
        return statement
    tries = 0
    again = True
    while again:
        again = False
        for smaller in _smaller(tree):
            tries += 1
            if tries > _MOST:
                return tree.sql(dialect)
            try:
                text = smaller.sql(dialect)
            except (sqlglot.errors.SqlglotError, AttributeError, TypeError, ValueError):
                continue
            if len(text) < len(tree.sql(dialect)) and shows(text):
                tree, again = smaller, True
                break
    return tree.sql(dialect)


def _smaller(tree: Any) -> Iterator[Any]:
    """Copies of the tree with one part less, large parts first."""
    for number, node in enumerate(tree.walk()):
        for change in _changes(node):
            copy = tree.copy()
            place = next(found for place, found in enumerate(copy.walk()) if place == number)
            replaced = change(place)
            if replaced is None:
                yield copy
            elif place.parent is None:
                yield replaced.copy()
            else:
                place.replace(replaced.copy())
                yield copy


def _changes(node: Any) -> Iterator[Callable[[Any], Any]]:
    """What can be done to a node: each changes it in place, or returns what to put there."""
    for name in _OPTIONAL:
        # Functions of windows depend on the order.
        if node.args.get(name) is not None and not isinstance(node, exp.Window):
            yield lambda place, name=name: place.set(name, None)
    for name in ("joins", "expressions"):
        parts = node.args.get(name)
        if isinstance(parts, list) and len(parts) > (name == "expressions"):
            for number in range(len(parts)):
                yield lambda place, name=name, number=number: place.set(
                    name, [part for other, part in enumerate(place.args[name]) if other != number]
                )
    if isinstance(node, exp.SetOperation | exp.Binary):
        yield lambda place: place.left
        yield lambda place: place.right
    elif isinstance(node, exp.Paren | exp.Not | exp.Subquery | exp.Func) and isinstance(
        node.this, exp.Expression
    ):
        yield lambda place: place.this
