"""The text of each part of a statement, as the user wrote it.

The parser's own writer spells functions, types, casts and numbers in another way, which may mean something
else to the engine. So the parser notes where parts begin and end, and they go to the engine unchanged.
"""

from __future__ import annotations

from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final

from lance_engine.base import load
from lance_engine.expr import duckdb_parser

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

#: The parser's methods for the parts that statements pass on. Of those that continue a part, that part is
#: the first argument.
_NOTED: Final = (
    "_parse_alias", "_parse_assignment", "_parse_column_def", "_parse_comparison", "_parse_ddl_select",
    "_parse_disjunction", "_parse_expression", "_parse_from", "_parse_query_modifiers", "_parse_select",
    "_parse_set_operations", "_parse_table", "_parse_types", "_parse_where", "_parse_with",
)  # fmt: skip
#: The entry of a node's metadata for its place.
_PLACE: Final = "lance_sql_place"


class _Source:
    """The text of a statement, with changes that do not alter its meaning."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[tuple[int, int, str]] = []

    def __deepcopy__(self, _: Any) -> _Source:
        return self

    def part(self, start: int, end: int) -> str:
        text = self.text[start:end]
        for begin, stop, replacement in sorted(self.edits, reverse=True):
            if start <= begin and stop <= end:
                text = text[: begin - start] + replacement + text[stop - start :]
        return text


def parse(text: str) -> exp.Expression | None:
    """The tree of one statement, for `as_written`; a sqlglot error for text that the parser rejects."""
    load("sqlglot")
    from sqlglot import exp
    from sqlglot.dialects.duckdb import DuckDB

    dialect, source = DuckDB(), _Source(text)
    trees: list[Any] = _parser()(dialect=dialect, source=source).parse(dialect.tokenize(text), text)
    statements = [tree for tree in trees if tree is not None]
    if len(statements) != 1:
        return exp.Block(expressions=statements) if statements else None
    statements[0].meta[_PLACE] = (source, 0, len(text))
    return statements[0]


def as_written(node: exp.Expression) -> str:
    """The text of a part of a statement; that of the parser's writer for parts that no user wrote."""
    place = node.meta.get(_PLACE)
    if place is None:
        return str(node.sql(dialect="duckdb", normalize_functions="lower"))
    source, start, end = place
    return str(source.part(start, end))


def rename(statement: exp.Expression, names: list[exp.Expression], name: str) -> None:
    """Write `name` for the dotted `names`, in the texts of all parts that contain them."""
    source, _, _ = statement.meta[_PLACE]
    source.edits.append((names[0].meta["start"], names[-1].meta["end"] + 1, name))


def leave_out(part: exp.Expression, column: str) -> None:
    """Restrict each ``*`` in a part of a statement to the columns other than `column`, a plain name."""
    from sqlglot import exp

    source, _, _ = part.meta[_PLACE]
    for star in part.find_all(exp.Star):
        left_out = star.args.get("except_")
        if not left_out:
            end = star.meta["end"] + 1
            source.edits.append((end, end, f" EXCLUDE ({column})"))
            continue
        _, start, end = left_out[0].meta[_PLACE]
        first = source.text[start:end]
        is_list = source.text[star.meta["end"] + 1 : start].rstrip().endswith("(")
        source.edits.append((start, end, f"{column}, {first}" if is_list else f"({column}, {first})"))


@cache
def _parser() -> type[Any]:
    inherited = duckdb_parser()

    class Parser(inherited):  # type: ignore[misc, valid-type]
        def __init__(self, *, source: _Source, **options: Any) -> None:
            super().__init__(**options)
            self.lance_sql_source = source

    for name in _NOTED:
        setattr(Parser, name, _noting(getattr(inherited, name)))
    return Parser


def _noting(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the parser that notes the place of what it returns."""
    from sqlglot import exp

    @wraps(method)
    def noting(parser: Any, *arguments: Any, **options: Any) -> Any:
        continued = arguments[0] if arguments and isinstance(arguments[0], exp.Expr) else None
        start = parser._curr.start if parser._curr else None
        if continued is not None:
            place = continued.meta.get(_PLACE)
            start = continued.meta.get("start") if place is None else place[1]
        node = method(parser, *arguments, **options)
        if isinstance(node, exp.Expr) and start is not None and parser._prev and parser._prev.end >= start:
            node.meta[_PLACE] = (parser.lance_sql_source, start, parser._prev.end + 1)
        return node

    return noting
