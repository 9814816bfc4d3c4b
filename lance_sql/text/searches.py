"""Parses calls of search functions in SQL texts: ``lance_vector_search('x.lance', 'v', [1, 2], k := 5)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from lance_engine.base import nearest_name
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.text.statement import Statement, once_per_statement
from lance_sql.text.tokens import Token, arguments, closing


class SearchFunction(NamedTuple):
    """A function: positional arguments after the table, and named arguments with their search options."""

    name: str
    places: tuple[str, ...]
    takes: str
    usage: str
    options: Mapping[str, str]


_VECTOR_OPTIONS: Final = (
    "k", "metric", "filter", "prefilter", "columns", "lower", "upper", "use_index", "fast_search", "nprobes",
    "minimum_nprobes", "maximum_nprobes", "refine_factor", "ef", "estimates",
)  # fmt: skip


def _options(*names: str) -> dict[str, str]:
    """Options by name; DuckDB's Lance extension uses the name ``nprobs``."""
    options = {name: name for name in names}
    return options | ({"nprobs": "nprobes"} if "nprobes" in options else {})


VECTOR_SEARCH: Final = SearchFunction(
    "lance_vector_search",
    ("column", "query"),
    "a table, a column, a vector and options",
    "lance_vector_search('x.lance', 'column', [0.1, 0.2], k := 10)",
    _options(*_VECTOR_OPTIONS, "explain_verbose"),
)
FULL_TEXT_SEARCH: Final = SearchFunction(
    "lance_fts",
    ("column", "text"),
    "a table, a column, words and options",
    "lance_fts('x.lance', 'column', 'some words', k := 10)",
    _options("k", "filter", "prefilter", "columns", "use_index", "fast_search"),
)
HYBRID_SEARCH: Final = SearchFunction(
    "lance_hybrid_search",
    ("column", "query", "text_column", "text"),
    "a table, a column of vectors, a vector, a column of text, words and options",
    "lance_hybrid_search('x.lance', 'vector', [0.1, 0.2], 'text', 'some words', k := 10)",
    {
        **_options(
            "k",
            "metric",
            "filter",
            "prefilter",
            "columns",
            "use_index",
            "fast_search",
            "nprobes",
            "refine_factor",
            "alpha",
        ),
        "oversample_factor": "oversample",
    },
)

#: Whether an index may answer queries ordered by a distance: ``auto`` or ``off``.
INDEX_SETTING: Final = "lance_vector_index"

FUNCTIONS: Final = {function.name: function for function in (VECTOR_SEARCH, FULL_TEXT_SEARCH, HYBRID_SEARCH)}


def index_setting(tokens: list[Token]) -> bool | None:
    """The value set by ``SET lance_vector_index = 'auto'``; None for other statements."""
    words = [token.value.lower() for token in tokens if token.text != ";"]
    while len(words) > 1 and words[0] in ("set", "reset") and words[1] in ("session", "global", "local"):
        del words[1]
    if words[1:2] != [INDEX_SETTING]:
        return None
    if words[0] == "reset" and len(words) == 2:
        return False
    if words[0] == "set" and len(words) == 4 and words[2] in ("=", "to") and words[3] in ("auto", "off"):
        return words[3] == "auto"
    if words[0] not in ("set", "reset"):
        return None
    raise UnsupportedFeatureError(
        f"{INDEX_SETTING} must be auto or off", remedy=f"Write SET {INDEX_SETTING} = 'auto'"
    )


class Expression(NamedTuple):
    """An argument: its text, and whether it is a query in parentheses."""

    text: str
    start: int
    is_query: bool


class SearchCall(NamedTuple):
    """A call from `start` to `end` of the text, over the table or path `location`."""

    function: SearchFunction
    start: int
    end: int
    location: str
    quoted: bool
    places: Mapping[str, Expression]
    options: Mapping[str, Expression]


@once_per_statement
def search_calls(statement: Statement) -> list[SearchCall]:
    """The calls in a statement, in order; UnsupportedFeatureError for unknown arguments."""
    text, tokens = statement.original, statement.tokens
    calls = []
    for position, token in enumerate(tokens):
        function = FUNCTIONS.get(token.text.lower()) if token.kind == "word" else None
        if function is None:
            continue
        end = closing(tokens, position + 1) if position + 1 < len(tokens) else None
        if end is None or tokens[position + 1].text != "(":
            continue
        calls.append(_call(text, function, token, tokens[end], arguments(tokens[position + 2 : end])))
    return calls


def _call(
    text: str, function: SearchFunction, name: Token, last: Token, given: list[list[Token]]
) -> SearchCall:
    positional = [argument for argument in given if not _is_named(argument)]
    named = [argument for argument in given if _is_named(argument)]
    wanted = 1 + len(function.places)
    if (
        len(positional) not in (wanted, wanted + 1)
        or not all(positional)
        or positional[0][0].kind not in ("string", "quoted", "word")
        or not _is_one_name(positional[0])
    ):
        raise UnsupportedFeatureError(
            f"{function.name} takes {function.takes}", remedy=f"Write {function.usage}"
        )
    options: dict[str, Expression] = {}
    if len(positional) > wanted:
        options["k"] = _expression(text, function, positional[wanted])
    for argument in named:
        option = _option(function, argument[0].text)
        if option in options:
            raise UnsupportedFeatureError(
                f"{function.name} gets the argument '{option}' twice", remedy="Give it once"
            )
        options[option] = _expression(text, function, argument[2:])
    table = positional[0]
    location = ".".join(token.value for token in table[::2])
    quoted = len(table) == 1 and table[0].kind != "word"
    places = {
        place: _expression(text, function, argument)
        for place, argument in zip(function.places, positional[1:], strict=False)
    }
    return SearchCall(function, name.start, last.end, location, quoted, places, options)


def _is_one_name(tokens: list[Token]) -> bool:
    """Whether there is a single token, or several words separated by dots."""
    names, dots = tokens[::2], tokens[1::2]
    return (
        len(names) == len(dots) + 1
        and all(dot.text == "." for dot in dots)
        and (not dots or all(name.kind in ("word", "quoted") for name in names))
    )


def _is_named(argument: list[Token]) -> bool:
    # DuckDB's Lance extension uses ``k = 5``; a comparison is never a positional argument.
    return len(argument) > 2 and argument[0].kind == "word" and argument[1].text in (":=", "=>", "=")


def _option(function: SearchFunction, name: str) -> str:
    known = function.options.get(name.lower())
    if known is None:
        near = nearest_name(name.lower(), function.options)
        hint = f"Did you mean '{near}'? " if near else ""
        raise UnsupportedFeatureError(
            f"{function.name} has no argument '{name}'",
            remedy=f"{hint}Its arguments are {', '.join(function.options)}",
        )
    return known


def _expression(text: str, function: SearchFunction, tokens: list[Token]) -> Expression:
    if not tokens:
        raise UnsupportedFeatureError(
            f"{function.name}: an argument is empty", remedy=f"Write {function.usage}"
        )
    is_query = tokens[0].text == "(" and len(tokens) > 1 and tokens[1].upper in ("SELECT", "FROM", "WITH")
    return Expression(text[tokens[0].start : tokens[-1].end], tokens[0].start, is_query)
