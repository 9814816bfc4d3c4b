"""Calls of the search functions in a SQL text: ``lance_vector_search('x.lance', 'v', [1, 2], k := 5)``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, arguments, closing

VECTOR_SEARCH: Final = "lance_vector_search"

#: Arguments by name, and what the search calls them; the extension of DuckDB for Lance writes ``nprobs``.
OPTIONS: Final[Mapping[str, str]] = {
    "k": "k",
    "metric": "metric",
    "filter": "filter",
    "prefilter": "prefilter",
    "columns": "columns",
    "lower": "lower",
    "upper": "upper",
    "use_index": "use_index",
    "fast_search": "fast_search",
    "nprobes": "nprobes",
    "nprobs": "nprobes",
    "minimum_nprobes": "minimum_nprobes",
    "maximum_nprobes": "maximum_nprobes",
    "refine_factor": "refine_factor",
    "ef": "ef",
}
_USAGE: Final = f"Write {VECTOR_SEARCH}('x.lance', 'column', [0.1, 0.2], k := 10)"


@dataclass(frozen=True, slots=True)
class Expression:
    """An argument: its text, and whether it is a query in brackets."""

    text: str
    start: int
    is_query: bool


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A call from `start` to `end` of the text, over the table or path `location`."""

    start: int
    end: int
    location: str
    quoted: bool
    column: Expression
    query: Expression
    options: Mapping[str, Expression]


def search_calls(statement: Statement) -> list[SearchCall]:
    """The calls in a statement, in order; UnsupportedFeatureError for arguments that no call takes."""
    text, tokens = statement.original, statement.tokens
    found = []
    for position, token in enumerate(tokens):
        if token.kind != "word" or token.text.lower() != VECTOR_SEARCH:
            continue
        end = closing(tokens, position + 1) if position + 1 < len(tokens) else None
        if end is None or tokens[position + 1].text != "(":
            continue
        found.append(_call(text, token, tokens[end], arguments(tokens[position + 2 : end])))
    return found


def _call(text: str, name: Token, last: Token, given: list[list[Token]]) -> SearchCall:
    positional = [argument for argument in given if not _is_named(argument)]
    named = [argument for argument in given if _is_named(argument)]
    if len(positional) not in (3, 4) or not all(positional) or len(positional[0]) != 1:
        raise UnsupportedFeatureError(
            f"{VECTOR_SEARCH} takes a table, a column, a vector and options", remedy=_USAGE
        )
    options = {_option(argument[0].text): _expression(text, argument[2:]) for argument in named}
    if len(positional) == 4:
        options.setdefault("k", _expression(text, positional[3]))
    table = positional[0][0]
    return SearchCall(
        name.start,
        last.end,
        table.value,
        table.kind != "word",
        _expression(text, positional[1]),
        _expression(text, positional[2]),
        options,
    )


def _is_named(argument: list[Token]) -> bool:
    return len(argument) > 2 and argument[0].kind == "word" and argument[1].text in (":=", "=>")


def _option(name: str) -> str:
    known = OPTIONS.get(name.lower())
    if known is None:
        near = difflib.get_close_matches(name.lower(), OPTIONS, n=1)
        hint = f"Did you mean '{near[0]}'? " if near else ""
        raise UnsupportedFeatureError(
            f"{VECTOR_SEARCH} has no argument '{name}'", remedy=f"{hint}It takes {', '.join(OPTIONS)}"
        )
    return known


def _expression(text: str, tokens: list[Token]) -> Expression:
    if not tokens:
        raise UnsupportedFeatureError(f"{VECTOR_SEARCH}: an argument is empty", remedy=_USAGE)
    is_query = tokens[0].text == "(" and len(tokens) > 1 and tokens[1].upper in ("SELECT", "FROM", "WITH")
    return Expression(text[tokens[0].start : tokens[-1].end], tokens[0].start, is_query)
