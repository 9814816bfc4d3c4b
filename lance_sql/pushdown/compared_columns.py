"""The columns of a query of which it only has to know where values are equal.

It groups by them, counts their distinct values, or selects distinct rows: dictionary codes can stand for the
values, which are needed once for each row of the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lance_sql.syntax.scopes import BoundQuery
from lance_sql.syntax.shapes import PlainSelect, plain_select

if TYPE_CHECKING:
    from sqlglot import exp

_PLAIN_GROUPS: Final = frozenset({"all", "expressions"})
_CLAUSES: Final = ("where", "group", "having", "order", "limit", "offset", "distinct")


class Uses(NamedTuple):
    """What a query does with a column of which it only compares values.

    `places` are its mentions by characters, which may be replaced. `shown` are the positions in the result
    with the column itself. `counted`: it is in a COUNT DISTINCT. `orders`: rows are in the order of its
    values.
    """

    places: tuple[tuple[int, int], ...]
    shown: tuple[int, ...]
    counted: bool
    orders: bool


class ComparedColumns(NamedTuple):
    """A query over `table`, written at `place`, that only compares values of some columns.

    `keys` is the number of items in GROUP BY, or those of SELECT DISTINCT; 0 for one group of all rows.
    `alias` is the name that the table needs if another one takes its place, "" if it has an alias.
    """

    table: str
    place: tuple[int, int]
    alias: str
    columns: dict[str, Uses]
    keys: int
    is_filtered: bool


def compared_columns(query: BoundQuery, wanted: Collection[str]) -> ComparedColumns | None:
    """What a query does with `wanted` columns of its dataset; None if it has to know the values of each."""
    from sqlglot import exp

    plain = plain_select(query, *_CLAUSES)
    place = None if plain is None else query.tree.place(plain.source.this)
    if plain is None or place is None or not query.named_once(plain.occurrence.table):
        return None
    select, args = plain.select, plain.select.args
    distinct, group = args.get("distinct"), args.get("group")
    if distinct is not None and distinct.args.get("on"):
        return None
    if group is not None and not {name for name, value in group.args.items() if value} <= _PLAIN_GROUPS:
        return None
    items = select.expressions
    outside = [*items, *(args.get(name) for name in ("group", "having", "order"))]
    if any(_sees_more(part, query, plain) for part in outside if part is not None):
        return None
    groups_by_all = group is not None and group.args.get("all")
    grouped = [] if group is None else group.expressions
    reader = _Reader(query, plain, grouped, is_grouped=bool(group) or bool(distinct))
    columns = {}
    for column in wanted:
        uses = reader.uses(column)
        if uses is not None:
            columns[column] = uses
    written = plain.source.args.get("alias")
    alias = "" if isinstance(written, exp.TableAlias) else plain.source.name
    keys = len(items) if distinct is not None or groups_by_all else len(grouped)
    is_filtered = args.get("where") is not None
    if not columns:
        return None
    return ComparedColumns(plain.occurrence.table, place, alias, columns, keys, is_filtered)


def _sees_more(part: exp.Expression, query: BoundQuery, plain: PlainSelect) -> bool:
    """Whether a part may use columns without naming them, or rows of more than a group."""
    from sqlglot import exp

    unknown = (exp.Query, exp.Window, exp.Columns, exp.Explode, exp.PositionalColumn, exp.Collate)
    if part.find(*unknown) is not None or any(node.this == "ALL" for node in part.find_all(exp.Var)):
        return True
    if any(not isinstance(star.parent, exp.Count) for star in part.find_all(exp.Star)):
        return True
    names = (node.this for node in part.find_all(exp.Column) if not node.table)
    return any(query.key(name) in plain.scope.sources for name in names)  # all columns as one value


class _Reader:
    def __init__(
        self, query: BoundQuery, plain: PlainSelect, grouped: list[Any], *, is_grouped: bool
    ) -> None:
        self._query = query
        self._found = plain
        self._items = plain.select.expressions
        order = plain.select.args.get("order")
        self._ordered = [] if order is None else order.expressions
        self._grouped = grouped
        self._is_grouped = is_grouped

    def uses(self, column: str) -> Uses | None:
        """What the query does with a column; None if more than comparing values."""
        from sqlglot import exp

        args = self._found.select.args
        understood: list[Any] = []
        shown: list[int] = []
        #: the names of items that are the column
        names = {column.lower()}
        for number, item in enumerate(self._items):
            is_column = self._is(item.unalias(), column)
            if isinstance(item, exp.Alias) and not is_column and item.alias.lower() == column.lower():
                return None  # the name of another value in ORDER BY
            if is_column:
                shown.append(number)
                understood.append(item.unalias())
                names.add(item.alias_or_name.lower())
        parts = (*self._items, args.get("having"), args.get("order"))
        counts = [node for part in parts for node in _counted(part) if self._is(node, column)]
        understood += counts
        if not (self._is_grouped or counts):
            return None
        keys = [item for item in self._grouped if self._is(item, column)]
        orders = False
        for item in self._ordered:
            key = item.this if isinstance(item, exp.Ordered) else item
            if self._is(key, column) and key.name.lower() in names:
                keys.append(key)
                orders = True
            elif self._is_reference(key, names) or (_position(key) in shown):
                understood.append(key)
                orders = True
            elif key.find(exp.Column, exp.Func) is None and _position(key) is None:
                return None  # a position that is written in another way
        # A name in GROUP BY is that of a column, if the table has it, and in ORDER BY that of an item.
        if any(self._is_column(name) for name in names - {column.lower()}):
            return None
        understood += [item for item in self._grouped if self._is_reference(item, names)]
        replaced = [node for node in [*understood, *keys] if self._is(node, column)]
        known = {id(node.unnest()) for node in (*understood, *keys)}
        if not replaced or any(id(node) not in known for node in self._mentions(column, names)):
            return None
        places = [self._place(node) for node in replaced]
        if None in places:
            return None
        return Uses(tuple(sorted({place for place in places if place})), tuple(shown), bool(counts), orders)

    def _is(self, node: Any, column: str) -> bool:
        place = self._query.column(self._found.scope, node)
        return place is not None and place.column == column

    def _is_column(self, name: str) -> bool:
        """Whether the table has a column of a name, in any case, or is called so."""
        columns = self._query.columns_of(self._found.occurrence.table)
        return name in map(str.lower, (*columns, *self._found.scope.sources))

    def _is_reference(self, node: Any, names: Collection[str]) -> bool:
        """Whether a node is nothing but one of these names of items."""
        from sqlglot import exp

        return isinstance(node, exp.Column) and not node.table and node.name.lower() in names

    def _place(self, node: Any) -> tuple[int, int] | None:
        """The characters of a column with its qualifier."""
        places = [self._query.tree.place(part) for part in node.unnest().parts]
        known = [place for place in places if place is not None]
        return (known[0][0], known[-1][1]) if len(known) == len(places) else None

    def _mentions(self, column: str, names: Collection[str]) -> Iterator[Any]:
        """The nodes that may refer to a column, or to an item with one of these names."""
        from sqlglot import exp

        args = self._found.select.args
        for part in (*self._items, *self._grouped, args.get("having"), args.get("order")):
            for node in () if part is None else part.find_all(exp.Column, exp.Dot):
                if isinstance(node, exp.Dot) or any(piece.name.lower() in names for piece in node.parts):
                    yield node
        # In a condition, a name is that of a column if the table has it, and conditions keep theirs.
        where = args.get("where")
        for node in () if where is None else where.find_all(exp.Identifier):
            if node.name.lower() in names and node.name.lower() != column.lower():
                yield node


def _counted(part: Any) -> Iterator[Any]:
    """The columns in ``count(DISTINCT column)``."""
    from sqlglot import exp

    for count in () if part is None else part.find_all(exp.Count):
        inside = count.this
        if isinstance(inside, exp.Distinct) and len(inside.expressions) == 1:
            yield inside.expressions[0]


def _position(node: Any) -> int | None:
    """The position of an item of the SELECT list that a key of ORDER BY is."""
    from sqlglot import exp

    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return int(node.name) - 1 if is_number else None
