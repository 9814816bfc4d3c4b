"""Queries that start with FROM and have no SELECT, such as ``FROM t``: DataFusion returns no columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lance_sql.text.tokens import Token

#: Keywords after which a query may start within a statement.
_BEFORE_QUERY = frozenset({"ANALYZE", "AS", "EXPLAIN", "VERBOSE"})
_SET_OPERATIONS = frozenset({"EXCEPT", "INTERSECT", "UNION"})
_OF_SET_OPERATIONS = frozenset({"ALL", "BY", "DISTINCT", "NAME"})


@dataclass
class _Scope:
    """The part of a statement, or of parentheses in it, that was read so far."""

    #: the first word, initially ""
    first: str = ""
    #: the position of a FROM without a SELECT so far
    pending: int | None = None
    selected: bool = False


def without_select(tokens: Sequence[Token]) -> Iterator[int]:
    """The positions in the text where ``SELECT *`` is implied: before each FROM that starts a query."""
    scopes = [_Scope()]
    before = ""
    for token in tokens:
        scope, word = scopes[-1], token.upper
        if token.text in (")", "]", "}"):
            if scope.pending is not None:
                yield scope.pending
            scopes = scopes[:-1] or [_Scope()]
        elif token.text in ("(", "[", "{"):
            scope.first = scope.first or word
            # trim(FROM text) is a function
            scopes.append(_Scope(first=before if before == "TRIM" else ""))
        elif word in _SET_OPERATIONS:
            if scope.pending is not None:
                yield scope.pending
            scopes[-1] = _Scope()
        elif word == "SELECT":
            scope.first, scope.pending, scope.selected = scope.first or word, None, True
        elif word == "FROM":
            begins = scope.first in ("", "WITH") or before in _BEFORE_QUERY
            if begins and not scope.selected and scope.pending is None:
                scope.pending = token.start
            scope.first = scope.first or word
        elif scope.first or word not in _OF_SET_OPERATIONS:
            # Quoted names and strings are not words: substring("name" FROM 2) is a function.
            scope.first = scope.first or word or token.text
        before = word
    for scope in scopes:
        if scope.pending is not None:
            yield scope.pending
