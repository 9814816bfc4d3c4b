"""Queries of plain shapes: one SELECT over one dataset."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lance_sql.syntax.scopes import BoundQuery, Occurrence, Scope

if TYPE_CHECKING:
    from sqlglot import exp


class PlainSelect(NamedTuple):
    """A statement that is one SELECT from one dataset."""

    select: exp.Select
    scope: Scope
    occurrence: Occurrence
    #: the table in FROM
    source: exp.Table


def plain_select(query: BoundQuery, *clauses: str) -> PlainSelect | None:
    """The SELECT of a statement that has no clauses but some of these, and ``SELECT ... FROM dataset``."""
    from sqlglot import exp

    select = query.tree.root
    scope = query.scope(select)
    if not isinstance(select, exp.Select) or scope is None:
        return None
    allowed = {"expressions", "from_", *clauses}
    if any(value for name, value in select.args.items() if name not in allowed):
        return None
    source = select.args["from_"].this
    occurrence = query.occurrence(source)
    return None if occurrence is None else PlainSelect(select, scope, occurrence, source)


def is_row_wise(parts: Iterable[Any]) -> bool:
    """Whether expressions only consist of columns, constants and operators: each row has its own values."""
    known = _row_wise()
    return all(type(node) in known for part in parts if part is not None for node in part.walk())


@cache
def _row_wise() -> frozenset[type]:
    from sqlglot import exp

    return frozenset(
        {
            exp.Add, exp.Alias, exp.And, exp.Between, exp.Boolean, exp.Case, exp.Cast, exp.Column,
            exp.DPipe, exp.DataType, exp.Div, exp.EQ, exp.Escape, exp.GT, exp.GTE, exp.ILike, exp.Identifier,
            exp.If, exp.In, exp.IntDiv, exp.Is, exp.LT, exp.LTE, exp.Like, exp.Literal, exp.Mod, exp.Mul,
            exp.NEQ, exp.Neg, exp.Not, exp.Null, exp.Or, exp.Paren, exp.Star, exp.Sub, exp.TryCast,
            exp.Where,
        }
    )  # fmt: skip


def limited_rows(select: exp.Select) -> range | None:
    """The positions of the rows that ``LIMIT 10 OFFSET 5`` returns; None for other limits."""
    limit, offset = select.args.get("limit"), select.args.get("offset")
    count = _number(limit)
    skipped = 0 if offset is None else _number(offset)
    if count is None or skipped is None:
        return None
    return range(skipped, skipped + count)


def _number(clause: Any) -> int | None:
    """The whole number in LIMIT or OFFSET."""
    from sqlglot import exp

    if clause is None or any(value for name, value in clause.args.items() if name != "expression"):
        return None
    number = clause.args.get("expression")
    is_whole = isinstance(number, exp.Literal) and not number.is_string and number.name.isdecimal()
    return int(number.name) if is_whole else None
