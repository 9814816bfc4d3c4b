"""Reads conditions that scans test as engines do, from their tokens.

Patterns that kernels cannot test become others, which more strings match: such a condition is true of at
least the rows of which the engine's is true. Everything else is left to the engine: a condition that is not
understood completely has no meaning here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.arrow_values import scalar
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import build
from lance_engine.expr.patterns import implied, matching
from lance_engine.expr.tree import Column, Literal, Node
from lance_engine.expr.value_types import is_text

from lance_sql.text.regexes import implied_pattern
from lance_sql.text.tokens import Token

#: Returns the column that a name refers to, None if unknown. The parts of the name are its tokens.
Columns = Callable[[Sequence[Token]], Column | None]

_MATCHES: Final = {
    "CONTAINS": "contains",
    "ENDS_WITH": "ends_with",
    "PREFIX": "starts_with",
    "STARTS_WITH": "starts_with",
    "SUFFIX": "ends_with",
}
_OPERATORS: Final = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MOST_INTEGER: Final = (1 << 63) - 1


class _NotUnderstoodError(Exception):
    pass


def predicate(tokens: Sequence[Token], columns: Columns, *, backslash_escapes: bool) -> Node | None:
    """The condition in `tokens`; None if any part of it is not understood.

    `backslash_escapes`: in patterns, a backslash has a meaning without ESCAPE; functions may be redefined.
    """
    reader = _Reader(tokens, columns, backslash_escapes)
    try:
        found = reader.disjunction()
    except (_NotUnderstoodError, InvalidFilterError, RecursionError):
        return None
    return found if reader.is_at_end else None


class _Reader:
    """Reads tokens from left to right; each method consumes what it returns."""

    def __init__(self, tokens: Sequence[Token], columns: Columns, backslash_escapes: bool) -> None:
        self._tokens = tokens
        self._columns = columns
        self._backslash_escapes = backslash_escapes
        self._position = 0
        #: whether what is read is negated, so that it has to be exact
        self._is_negated = False

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._tokens)

    def disjunction(self) -> Node:
        parts = [self._conjunction()]
        while self._takes("OR"):
            parts.append(self._conjunction())
        return build.disjunction(parts)

    def _conjunction(self) -> Node:
        parts = [self._negation()]
        while self._takes("AND"):
            parts.append(self._negation())
        return build.conjunction(parts)

    def _negation(self) -> Node:
        if self._takes("NOT"):
            outer, self._is_negated = self._is_negated, True
            found = build.negate(self._negation())
            self._is_negated = outer
            return found
        if self._takes("("):
            found = self.disjunction()
            self._require(")")
            return found
        return self._test()

    def _test(self) -> Node:
        kind = _MATCHES.get(self._word())
        if kind is not None and self._word(1) == "(":
            return self._call(kind)
        if self._word() == "REGEXP_MATCHES" and self._word(1) == "(":
            return self._regex()
        column = self._column()
        if self._takes("IS"):
            negated = self._takes("NOT")
            self._require("NULL")
            return build.is_null(column, negated=negated)
        negated = self._takes("NOT")
        if self._takes("LIKE"):
            found = self._like("like", column, negated)
        elif self._takes("ILIKE"):
            found = self._like("ilike", column, negated)
        elif self._takes("IN"):
            found = self._member(column)
        elif self._takes("BETWEEN"):
            low = self._constant(column)
            self._require("AND")
            if not at.is_integer(column.type):
                raise _NotUnderstoodError
            bounds = build.compare(">=", column, low), build.compare("<=", column, self._constant(column))
            found = build.conjunction(bounds)
        elif negated:
            raise _NotUnderstoodError
        else:
            return self._comparison(column)
        return build.negate(found) if negated else found

    def _call(self, kind: str) -> Node:
        if self._backslash_escapes:
            raise _NotUnderstoodError
        self._position += 2
        column = self._column()
        self._require(",")
        pattern = self._string()
        self._require(")")
        return matching(kind, _text(column), pattern)

    def _regex(self) -> Node:
        self._position += 2
        column = self._column()
        self._require(",")
        pattern = implied_pattern(self._string())
        self._require(")")
        if self._backslash_escapes or self._is_negated or pattern is None:
            raise _NotUnderstoodError
        return matching("like", _text(column), pattern, "\\")

    def _like(self, kind: str, column: Column, negated: bool) -> Node:
        pattern, escape = self._string(), None
        if self._takes("ESCAPE"):
            escape = self._string()
            if len(escape) != 1 or not escape.isascii() or pattern.endswith(escape):
                raise _NotUnderstoodError
        if self._backslash_escapes and (escape is not None or "\\" in pattern):
            raise _NotUnderstoodError
        if not (negated or self._is_negated):
            return implied(kind, _text(column), pattern, escape)
        if kind != "like":
            raise _NotUnderstoodError
        return matching(kind, _text(column), pattern, escape)

    def _member(self, column: Column) -> Node:
        self._require("(")
        values = [self._constant(column)]
        while self._takes(","):
            values.append(self._constant(column))
        self._require(")")
        return build.member(column, [value.value for value in values])

    def _comparison(self, column: Column) -> Node:
        text = ""
        while (token := self._peek()) is not None and token.kind == "other" and token.text in "<>=!":
            text += token.text
            self._position += 1
        op = _OPERATORS.get(text)
        if op is None or (is_text(column.type) and op not in ("=", "<>")):
            raise _NotUnderstoodError
        return build.compare(op, column, self._constant(column))

    def _constant(self, column: Column) -> Literal:
        """A constant of the type of the column: a whole number or a string."""
        if is_text(column.type):
            return Literal(scalar(self._string()))
        negated = self._takes("-")
        token = self._peek()
        if not at.is_integer(column.type) or token is None or not token.text.isdecimal():
            raise _NotUnderstoodError
        if token.kind != "number" or int(token.text) > _MOST_INTEGER:
            raise _NotUnderstoodError
        self._position += 1
        return Literal(scalar(-int(token.text) if negated else int(token.text), pa.int64()))

    def _string(self) -> str:
        token = self._peek()
        if token is None or token.kind != "string":
            raise _NotUnderstoodError
        self._position += 1
        return token.value

    def _column(self) -> Column:
        begin = self._position
        self._position += 3 if self._word(1) == "." else 1
        parts = self._tokens[begin : self._position : 2]
        known = all(part.kind in ("word", "quoted") for part in parts)
        column = self._columns(parts) if known and parts else None
        if column is None:
            raise _NotUnderstoodError
        return column

    def _peek(self, ahead: int = 0) -> Token | None:
        position = self._position + ahead
        return self._tokens[position] if position < len(self._tokens) else None

    def _word(self, ahead: int = 0) -> str:
        token = self._peek(ahead)
        return "" if token is None else token.upper

    def _takes(self, word: str) -> bool:
        """Whether the next token is `word`, which is then consumed."""
        found = self._word() == word
        self._position += found
        return found

    def _require(self, word: str) -> None:
        if not self._takes(word):
            raise _NotUnderstoodError


def _text(column: Column) -> Column:
    if not is_text(column.type):
        raise _NotUnderstoodError
    return column
