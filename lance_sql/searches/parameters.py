"""The parameters of a statement, some of which searches use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.engines.base import Parameters
from lance_sql.text.searches import Expression
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token

_REMEDY: Final = "Compute the vector first and pass it as a parameter, or write a query in brackets"


class SearchParameters:
    """The parameters of a statement; those used by searches are not passed to the engine."""

    def __init__(self, statement: Statement, given: Parameters) -> None:
        self._given = given
        self._places = parameter_places(statement.tokens)
        self._taken: set[str] = set()

    def holds(self, expression: Expression) -> bool:
        """Whether the expression is a parameter; UnsupportedFeatureError if it contains one."""
        inside = [
            (start, end)
            for start, end, _ in self._places
            if expression.start <= start < expression.start + len(expression.text)
        ]
        if expression.is_query or not inside:
            return False
        if inside != [(expression.start, expression.start + len(expression.text))]:
            raise UnsupportedFeatureError(
                f"The search uses a parameter in an expression: {expression.text!r}", remedy=_REMEDY
            )
        return True

    def take(self, expression: Expression) -> Any:
        """The value of the parameter `expression`."""
        name = next(name for start, _, name in self._places if start == expression.start)
        self._taken.add(name)
        return self.value(name)

    def value(self, name: str) -> Any:
        """The value of a parameter; those written ``?`` have numbers as names."""
        if isinstance(self._given, Mapping):
            if name in self._given:
                return self._given[name]
        elif self._given is not None and name.isdecimal() and 1 <= int(name) <= len(self._given):
            return self._given[int(name) - 1]
        raise UnsupportedFeatureError(
            f"The parameter {name!r} of a search has no value", remedy="Pass it as params="
        )

    def named(self, statement: Statement) -> Parameters:
        """The parameters for a statement that was built from parts of this one, with named parameters."""
        needed = {name for _, _, name in parameter_places(statement.tokens)}
        if not needed:
            return None
        if isinstance(self._given, Mapping):
            return {key: value for key, value in self._given.items() if key in needed}
        raise UnsupportedFeatureError(
            "Numbered parameters are not supported in the subquery of a search",
            remedy="Use named parameters: $query, with a dict as params=",
        )

    def left(self, statement: Statement) -> Parameters:
        """The remaining parameters of a statement in which the searches are replaced."""
        if self._given is None:
            return None
        places = parameter_places(statement.tokens)
        if isinstance(self._given, Mapping):
            needed = {name for _, _, name in places}
            return {key: value for key, value in self._given.items() if key in needed} or None
        numbered = any(statement.original[start] == "$" for start, _, _ in places)
        if numbered and self._taken:
            raise UnsupportedFeatureError(
                "Positional parameters cannot be mixed with search parameters",
                remedy="Use named parameters: $query, with a dict as params=",
            )
        rest: Sequence[Any] = [
            value for number, value in enumerate(self._given, 1) if str(number) not in self._taken
        ]
        return rest or None


def parameter_places(tokens: list[Token]) -> list[tuple[int, int, str]]:
    """Start, end and name of every parameter; those written ``?`` are numbered."""
    parameter_places = []
    number = 0
    for position, token in enumerate(tokens):
        if token.kind == "parameter":
            number += 1
            parameter_places.append((token.start, token.end, str(number)))
        elif token.text == "$" and position + 1 < len(tokens) and tokens[position + 1].start == token.end:
            parameter_places.append((token.start, tokens[position + 1].end, tokens[position + 1].text))
    return parameter_places
