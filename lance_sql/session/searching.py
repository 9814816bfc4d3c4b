"""Search functions in a statement: run when it is planned, their answers become tables of the engine."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from lance_engine.errors import DatasetNotFoundError, UnsupportedFeatureError

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.engines.base import Parameters
from lance_sql.session.prefilter import condition_of
from lance_sql.text.reference import Reference
from lance_sql.text.searches import VECTOR_SEARCH, Expression, SearchCall, search_calls
from lance_sql.text.statement import Statement, is_alias
from lance_sql.text.tokens import Token, quote, tokenize

if TYPE_CHECKING:
    from lance_sql.session.connection import Connection

_numbers = itertools.count()
_REMEDY: Final = "Compute the vector first and pass it as a parameter, or write a query in brackets"


class Searches:
    """The searches of a statement, and their answers by name.

    `statement` and `parameters` are what is left for the engine: each search is a table of that name.
    """

    def __init__(self, session: Connection, statement: Statement, parameters: Parameters) -> None:
        self._session = session
        self.tables: dict[str, pa.Table] = {}
        self.statement, self.parameters = statement, parameters
        calls = search_calls(statement)
        if calls:
            self._original = statement.original
            self._parameters = _Parameters(statement, parameters)
            self._replace(calls)

    def _replace(self, calls: list[SearchCall]) -> None:
        text = self._original
        pieces, done = [], 0
        for call in calls:
            name = f"lance_search_{next(_numbers)}"
            self.tables[name] = self._answer(call)
            alias = "" if _has_alias(text, call.end) else f" AS {VECTOR_SEARCH}"
            pieces += [text[done : call.start], quote(name), alias]
            done = call.end
        self.statement = Statement("".join([*pieces, text[done:]]))
        self.parameters = self._parameters.left(self.statement)

    def _answer(self, call: SearchCall) -> pa.Table:
        dataset = self._dataset(call)
        options = {name: self._value(value) for name, value in call.options.items()}
        if options.pop("prefilter", False) and options.get("filter") is None:
            options["filter"] = condition_of(self._original, call, dataset.schema)
        column = self._value(call.column)
        query = self._vectors(call.query)
        return dataset.nearest(str(column), query, **options)

    def _dataset(self, call: SearchCall) -> SqlDataset:
        found = self._session.catalog.open(
            Reference(call.location, call.location, certain=True, quoted=call.quoted)
        )
        if found is None:
            raise DatasetNotFoundError(
                f"{VECTOR_SEARCH} finds no dataset",
                path=call.location,
                remedy="Name a path such as 'x.lance', or a registered dataset",
            )
        return found

    def _vectors(self, expression: Expression) -> Any:
        """One vector, or an array of those that a query returns."""
        if not expression.is_query:
            return self._value(expression)
        found = self._session.computing().sql(expression.text[1:-1]).arrow()
        if found.num_columns != 1:
            raise UnsupportedFeatureError(
                f"The query of {VECTOR_SEARCH} returns {found.num_columns} columns",
                remedy="Select the vectors only",
            )
        vectors = found.column(0).to_pylist()
        if not vectors:
            raise UnsupportedFeatureError(f"The query of {VECTOR_SEARCH} returns no vector")
        return vectors[0] if len(vectors) == 1 else np.asarray(vectors)

    def _value(self, expression: Expression) -> Any:
        if self._parameters.holds(expression):
            return self._parameters.take(expression)
        if expression.is_query:
            return self._vectors(expression)
        row = self._session.computing().sql(f"SELECT {expression.text}").fetchone()
        assert row is not None
        return row[0]


class _Parameters:
    """The parameters of a statement, of which searches take some."""

    def __init__(self, statement: Statement, given: Parameters) -> None:
        self._given = given
        self._places = _places(statement.tokens)
        self._taken: set[str] = set()

    def holds(self, expression: Expression) -> bool:
        """Whether the expression is a parameter; UnsupportedFeatureError if one is a part of it."""
        inside = [
            (start, end)
            for start, end, _ in self._places
            if expression.start <= start < expression.start + len(expression.text)
        ]
        if inside and inside != [(expression.start, expression.start + len(expression.text))]:
            raise UnsupportedFeatureError(
                f"{VECTOR_SEARCH}: {expression.text!r} computes with a parameter", remedy=_REMEDY
            )
        return bool(inside)

    def take(self, expression: Expression) -> Any:
        name = next(name for start, _, name in self._places if start == expression.start)
        self._taken.add(name)
        if isinstance(self._given, Mapping):
            if name in self._given:
                return self._given[name]
        elif self._given is not None and name.isdecimal() and int(name) <= len(self._given):
            return self._given[int(name) - 1]
        raise UnsupportedFeatureError(
            f"{VECTOR_SEARCH}: parameter {expression.text!r} has no value", remedy="Pass it as params="
        )

    def left(self, statement: Statement) -> Parameters:
        """What a statement in which the searches are replaced still needs."""
        if self._given is None:
            return None
        places = _places(statement.tokens)
        if isinstance(self._given, Mapping):
            needed = {name for _, _, name in places}
            return {key: value for key, value in self._given.items() if key in needed} or None
        numbered = any(statement.original[start] == "$" for start, _, _ in places)
        if numbered and self._taken:
            raise UnsupportedFeatureError(
                "Parameters by number cannot be mixed with those of a search",
                remedy="Name them: $query, with a mapping as params=",
            )
        rest: Sequence[Any] = [
            value for number, value in enumerate(self._given, 1) if str(number) not in self._taken
        ]
        return rest or None


def _places(tokens: list[Token]) -> list[tuple[int, int, str]]:
    """Start, end and name of every parameter; those written ``?`` are numbered."""
    found = []
    number = 0
    for position, token in enumerate(tokens):
        if token.kind == "parameter":
            number += 1
            found.append((token.start, token.end, str(number)))
        elif token.text == "$" and position + 1 < len(tokens) and tokens[position + 1].start == token.end:
            found.append((token.start, tokens[position + 1].end, tokens[position + 1].text))
    return found


def _has_alias(text: str, end: int) -> bool:
    following = tokenize(text[end:])[:1]
    return bool(following) and is_alias(following[0])
