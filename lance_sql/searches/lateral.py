"""``FROM queries q, LATERAL lance_vector_search('t.lance', 'v', q.v)``: the vectors of another table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.syntax.scopes import conjuncts
from lance_sql.syntax.tree import query_tree
from lance_sql.text.searches import Expression, SearchCall
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from sqlglot import exp

#: The column of the result with the query vector.
SEARCHED = "__searched"


class Correlated(NamedTuple):
    """A search for the values of an expression over the columns of another table."""

    call: SearchCall
    expression: Expression
    function: exp.Expression
    vectors: exp.Expression


def correlated(statement: Statement, call: SearchCall) -> Correlated | None:
    """The search that a call is, if its query vector refers to columns of another table."""
    expression = call.places["query"]
    if expression.is_query or not any(letter.isalpha() or letter == '"' for letter in expression.text):
        return None
    tree = query_tree(statement)
    function = None if tree is None else tree.function_at(call.start)
    if function is None:
        return None
    from sqlglot import exp

    named = (exp.EQ, exp.Kwarg, exp.PropertyEQ)
    given = [argument for argument in function.expressions if not isinstance(argument, named)]
    vectors = given[1 + call.function.places.index("query")]
    if not any(column.name and not isinstance(column.this, exp.Star) for column in _columns(vectors)):
        return None
    return Correlated(call, expression, function, vectors)


def query_of_vectors(search: Correlated) -> str:
    """The query for the values of the expression in the tables before the search, as a single column.

    Conditions in WHERE on that table alone apply. UnsupportedFeatureError if the table is not found.
    """
    from sqlglot import exp

    outside: list[Any] = []  # the nodes around the search, from the inside out
    node: Any = search.function
    while node is not None:
        outside.append(node)
        node = node.parent
    above = {id(node) for node in outside}
    selects = (node for node in outside if isinstance(node, exp.Select))
    select = next((node for node in selects if node.args.get("from_") is not None), None)
    if select is None:
        raise _unclear(search)
    every = _sources(select)
    # The first tables may have the others as joins, and then also be around the search.
    place = {id(source): number for number, source in enumerate(every)}
    itself = next((place[id(node)] for node in outside if id(node) in place), None)
    sources = {source.alias_or_name: source for number, source in enumerate(every) if number != itself}
    owners = {column.table for column in _columns(search.vectors)}
    owner = next(iter(owners)) if len(owners) == 1 else None
    if owner == "" and len(sources) == 1:
        owner = next(iter(sources))
    if owner is None or owner not in sources:
        raise _unclear(search)
    source = sources[owner].copy()
    source.set("joins", None)
    query: Any = exp.select(search.vectors.copy()).from_(source)
    where = select.args.get("where")
    for condition in conjuncts(None if where is None else where.this):
        columns = _columns(condition)
        if columns and all(column.table == owner for column in columns) and not condition.find(exp.Query):
            query = query.where(condition.copy())
    for node in outside[outside.index(select) :]:
        clause = node.args.get("with_")
        for named in () if clause is None else clause.expressions:
            if id(named) not in above:
                query = query.with_(named.alias, named.this.copy())
    text: str = query.sql(dialect="duckdb")
    return text


def in_place_of(search: Correlated, name: str) -> str:
    """The replacement for the call when the results for all vectors are the table `name`."""
    from sqlglot import exp

    rows = f'(SELECT * EXCLUDE ("{SEARCHED}") FROM "{name}" WHERE "{SEARCHED}" = {search.expression.text})'
    return rows if isinstance(search.function.parent, exp.Lateral) else f"LATERAL {rows}"


def _columns(node: exp.Expression) -> list[exp.Column]:
    from sqlglot import exp

    return list(node.find_all(exp.Column))


def _sources(select: exp.Select) -> list[Any]:
    begin: Any = select.args["from_"]
    sources = [begin.this, *(join.this for join in select.args.get("joins") or ())]
    for source in list(sources):
        sources += [join.this for join in source.args.get("joins") or ()]
    return sources


def _unclear(search: Correlated) -> UnsupportedFeatureError:
    name = search.call.function.name
    return UnsupportedFeatureError(
        f"{name}: {search.expression.text!r} must be a column of a table to the left of the search",
        remedy=f"Write FROM queries AS q, LATERAL {name}(..., q.vector) AS found",
    )
