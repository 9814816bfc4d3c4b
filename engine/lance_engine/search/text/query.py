"""Queries on texts: words, phrases, and combinations of these."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from lance_engine.errors import InvalidSearchError

# Maximum nesting depth of a query.
_DEEPEST: Final = 32


@dataclass(frozen=True, slots=True)
class Match:
    """Documents that contain words of a text: at least one of them, or with ``operator="and"`` all.

    `fuzziness` is the number of letters that may differ, except in the first `prefix_length` ones; a word
    then matches up to `max_expansions` words. `boost` multiplies the score. `column` can be passed to the
    search instead.
    """

    text: str
    column: str | None = None
    operator: str = "or"
    fuzziness: int = 0
    prefix_length: int = 0
    max_expansions: int = 50
    boost: float = 1.0


@dataclass(frozen=True, slots=True)
class Phrase:
    """Documents that contain the words of a text in this order, with up to `slop` words between them."""

    text: str
    column: str | None = None
    slop: int = 0


@dataclass(frozen=True, slots=True)
class MultiMatch:
    """The highest score among several columns; `boosts` has a factor for each."""

    text: str
    columns: Sequence[str]
    boosts: Sequence[float] | None = None
    operator: str = "or"


@dataclass(frozen=True, slots=True)
class Boolean:
    """Documents found by all of `must`, or if it is empty by some of `should`, and by none of `must_not`.

    Scores of `must` and `should` are added.
    """

    must: Sequence[TextQuery] = ()
    should: Sequence[TextQuery] = ()
    must_not: Sequence[TextQuery] = ()


@dataclass(frozen=True, slots=True)
class Boost:
    """Documents that `positive` finds; the score of `negative` times `negative_boost` is subtracted."""

    positive: TextQuery
    negative: TextQuery
    negative_boost: float = 0.5


TextQuery: TypeAlias = Match | Phrase | MultiMatch | Boolean | Boost


def check(query: TextQuery, depth: int = 0) -> None:
    """InvalidSearchError if a query is invalid."""
    if depth > _DEEPEST:
        raise InvalidSearchError(f"The query is more than {_DEEPEST} levels deep")
    match query:
        case Match():
            _check_text(query.text)
            _check_operator(query.operator)
            for name in ("fuzziness", "prefix_length", "max_expansions"):
                _check_number(name, getattr(query, name))
            _check_factor("boost", query.boost)
        case Phrase():
            _check_text(query.text)
            _check_number("slop", query.slop)
        case MultiMatch():
            _check_text(query.text)
            _check_operator(query.operator)
            if isinstance(query.columns, str) or not query.columns:
                raise InvalidSearchError("Several columns must be a list")
            if query.boosts is not None:
                if len(query.boosts) != len(query.columns):
                    raise InvalidSearchError(
                        f"Got {len(query.columns)} columns and {len(query.boosts)} boosts"
                    )
                for factor in query.boosts:
                    _check_factor("boosts", factor)
        case Boolean():
            if not query.must and not query.should:
                raise InvalidSearchError("A boolean query needs must or should", remedy="Add one of them")
            for part in (*query.must, *query.should, *query.must_not):
                check(part, depth + 1)
        case Boost():
            _check_factor("negative_boost", query.negative_boost)
            check(query.positive, depth + 1)
            check(query.negative, depth + 1)
        case _:
            raise InvalidSearchError(
                f"Expected a query, got {type(query).__name__}",
                remedy="Pass a string, or a query of lance_sql.full_text; nearest() searches vectors",
            )


def with_columns(query: TextQuery, columns: Sequence[str]) -> TextQuery:
    """The query with columns filled in: the best of them if there are several."""
    match query:
        case Match() | Phrase() if query.column is None:
            if not columns:
                raise InvalidSearchError("The query has no column", remedy="Pass columns=['...']")
            if len(columns) == 1:
                return dataclasses.replace(query, column=columns[0])
            if isinstance(query, Match) and query == Match(query.text, operator=query.operator):
                return MultiMatch(query.text, tuple(columns), operator=query.operator)
            raise InvalidSearchError(
                "The query has no column, but the search has several", remedy="Name the column in the query"
            )
        case Boolean():
            return Boolean(
                *(
                    tuple(with_columns(part, columns) for part in parts)
                    for parts in (query.must, query.should, query.must_not)
                )
            )
        case Boost():
            return Boost(
                with_columns(query.positive, columns),
                with_columns(query.negative, columns),
                query.negative_boost,
            )
    return query


def names_all_columns(query: TextQuery) -> bool:
    """Whether all parts of a query have a column."""
    return all(leaf.column is not None for leaf in leaves(query))


def leaves(query: TextQuery) -> list[Match | Phrase]:
    """The distinct matches and phrases of a query whose columns are all known."""
    match query:
        case Match() | Phrase():
            return [query]
        case MultiMatch():
            return parts_of(query)
        case Boolean():
            parts = (*query.must, *query.should, *query.must_not)
        case Boost():
            parts = (query.positive, query.negative)
    return list(dict.fromkeys(leaf for part in parts for leaf in leaves(part)))


def parts_of(query: MultiMatch) -> list[Match | Phrase]:
    """A match for each column."""
    factors = query.boosts or [1.0] * len(query.columns)
    return [
        Match(query.text, column, query.operator, boost=factor)
        for column, factor in zip(query.columns, factors, strict=True)
    ]


def _check_text(text: Any) -> None:
    if not isinstance(text, str):
        raise InvalidSearchError(f"The text of a query must be a string, not {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidSearchError("The text of a query contains half of a surrogate pair") from error


def _check_operator(operator: Any) -> None:
    if not isinstance(operator, str) or operator.lower() not in ("or", "and"):
        raise InvalidSearchError(f"The operator must be 'or' or 'and', not {operator!r}")


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidSearchError(f"{name} must be a number >= 0, not {value!r}")


def _check_factor(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise InvalidSearchError(f"{name} must be a number >= 0, not {value!r}")
