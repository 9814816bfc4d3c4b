"""Facts about the text of a statement, found once for each statement."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from lance_sql.text.statement import Statement

T = TypeVar("T")


def once_per_statement(find: Callable[[Statement], T]) -> Callable[[Statement], T]:
    """`find`, which must depend on nothing but the statement. Callers share its result, and never change it.

    Errors are not kept. Statements are kept for texts that run again: see `lance_sql.text.script`.
    """

    @wraps(find)
    def found(statement: Statement) -> T:
        cache = statement.facts
        try:
            fact: T = cache[find]
        except KeyError:
            fact = cache[find] = find(statement)
        return fact

    return found
