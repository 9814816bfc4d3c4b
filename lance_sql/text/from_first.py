"""Queries that begin with FROM and select nothing, such as ``FROM t``: DataFusion gives them no columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lance_sql.text.tokens import Token

#: Words behind which a query may begin in the midst of a statement.
_BEFORE_QUERY = frozenset({"ANALYZE", "AS", "EXPLAIN", "VERBOSE"})
_SET_OPERATIONS = frozenset({"EXCEPT", "INTERSECT", "UNION"})
_OF_SET_OPERATIONS = frozenset({"ALL", "BY", "DISTINCT", "NAME"})


@dataclass
class _Scope:
    """What was read so far of a statement, or of brackets in it."""

    #: the first word, "" before it
    first: str = ""
    #: the place of a FROM that no SELECT was found for yet
    pending: int | None = None
    selected: bool = False


def without_select(tokens: Sequence[Token]) -> Iterator[int]:
    """The places in the text where ``SELECT *`` is meant: before each FROM that begins a query."""
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
            scope.first = scope.first or word
        before = word
    for scope in scopes:
        if scope.pending is not None:
            yield scope.pending
