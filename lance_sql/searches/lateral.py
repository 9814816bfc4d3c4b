"""``FROM queries q, LATERAL lance_vector_search('t.lance', 'v', q.v)``: the vectors of another table."""

from __future__ import annotations

import re
from typing import Any

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.text.from_first import without_select
from lance_sql.text.query_start import query_position
from lance_sql.text.searches import Expression, SearchCall
from lance_sql.text.tokens import tokenize

_MARK = "__search__"
_LATERAL = re.compile(r"\blateral\s*$", re.IGNORECASE)
#: The column of the result with the query vector.
SEARCHED = "__searched"


def is_correlated(expression: Expression) -> bool:
    """Whether the expression refers to columns of another table."""
    if expression.is_query or not any(letter.isalpha() or letter == '"' for letter in expression.text):
        return False
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(f"SELECT {expression.text}", dialect="duckdb")
    except SqlglotError:
        return False
    return any(column.name and not isinstance(column.this, exp.Star) for column in tree.find_all(exp.Column))


def query_of_vectors(text: str, call: SearchCall, expression: Expression) -> str:
    """The query for the values of `expression` in the tables before the search, as a single column.

    Conditions in WHERE on that table alone apply. UnsupportedFeatureError if the table is not found.
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    before = _LATERAL.sub(" ", text[: call.start])  # the parser only supports this keyword before functions
    marked = _as_select(f"{before}{_MARK}{text[call.end :]}")
    try:
        tree = parse_one(marked, dialect="duckdb")
        wanted = parse_one(f"SELECT {expression.text}", dialect="duckdb").expressions[0]
    except SqlglotError as error:
        raise _unclear(call, expression) from error
    table = next((table for table in tree.find_all(exp.Table) if table.name == _MARK), None)
    select = None if table is None else table.parent_select
    while isinstance(select, exp.Select) and select.args.get("from_", select.args.get("from")) is None:
        select = select.parent_select
    if not isinstance(select, exp.Select):
        raise _unclear(call, expression)
    sources = {source.alias_or_name: source for source in _sources(select) if not _holds_mark(source)}
    owners = {column.table for column in wanted.find_all(exp.Column)}
    owner = next(iter(owners)) if len(owners) == 1 else None
    if owner == "" and len(sources) == 1:
        owner = next(iter(sources))
    if owner is None or owner not in sources:
        raise _unclear(call, expression)
    query: Any = exp.select(wanted.copy()).from_(sources[owner].copy())
    where = select.args.get("where")
    if where is not None:
        for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            columns = list(condition.find_all(exp.Column))
            if columns and all(column.table == owner for column in columns) and not condition.find(exp.Query):
                query = query.where(condition.copy())
    node: Any = select
    while node is not None:
        clause = node.args.get("with_", node.args.get("with"))
        if clause is not None:
            for named in clause.expressions:
                if not _holds_mark(named):
                    query = query.with_(named.alias, named.this.copy())
        node = node.parent
    found: str = query.sql(dialect="duckdb")
    return found


def in_place_of(expression: Expression, name: str, after_lateral: bool) -> str:
    """The replacement for the call when the results for all vectors are the table `name`."""
    rows = f'(SELECT * EXCLUDE ("{SEARCHED}") FROM "{name}" WHERE "{SEARCHED}" = {expression.text})'
    return rows if after_lateral else f"LATERAL {rows}"


def _as_select(text: str) -> str:
    """The query in an EXPLAIN statement, starting with SELECT: the parser does not accept other forms."""
    tokens = tokenize(text)
    position = query_position(tokens)
    begin = tokens[position].start if position < len(tokens) else 0
    for place in sorted(without_select(tokens), reverse=True):
        text = f"{text[:place]}SELECT * {text[place:]}"
    return text[begin:]


def _sources(select: Any) -> list[Any]:
    from sqlglot import exp

    start = select.args.get("from_", select.args.get("from"))
    found = [start.this, *(join.this for join in select.args.get("joins") or ())]
    for source in list(found):
        if isinstance(source, exp.Table):
            found += [join.this for join in source.args.get("joins") or ()]
    return found


def _holds_mark(tree: Any) -> bool:
    from sqlglot import exp

    return any(table.name == _MARK for table in tree.find_all(exp.Table))


def _unclear(call: SearchCall, expression: Expression) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{call.function.name}: {expression.text!r} must be a column of a table to the left of the search",
        remedy=f"Write FROM queries AS q, LATERAL {call.function.name}(..., q.vector) AS found",
    )
