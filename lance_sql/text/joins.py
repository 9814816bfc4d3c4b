"""Finds columns of a statement's tables that must be equal: keys of one table then restrict another.

Rows of a table that no result of the statement depends on can be skipped. This module finds such restrictions
for columns that are compared in inner and semi joins and by correlated subqueries; others are ignored.
Engine plans are not used: they refer to columns by aliases, which can be ambiguous.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sqlglot import exp


class KeyPath(NamedTuple):
    """Rows of `receiver` only matter if their `column` is the `key` of a row of `giver` that matters.

    If `giver` occurs several times, that is a row which matters to any of them.
    """

    giver: str
    key: str
    receiver: str
    column: str


class _Occurrence(NamedTuple):
    """An occurrence of a table in a statement: the table, and the number of the occurrence."""

    table: str
    number: int


class _Place(NamedTuple):
    """A column of an occurrence of a table."""

    occurrence: _Occurrence
    column: str


@dataclass(slots=True)
class _Scope:
    """A SELECT: its sources by the names with which columns may be qualified."""

    select: exp.Select
    parent: _Scope | None
    #: None for sources that are not Lance tables
    sources: dict[str, _Occurrence | None] = field(default_factory=dict)
    #: sources of inner joins, all of whose rows need a match
    inner: set[_Occurrence] = field(default_factory=set)
    is_readable: bool = True


def key_paths(text: str, tables: Mapping[str, Collection[str]]) -> tuple[list[KeyPath], dict[str, int]]:
    """The paths of a statement over some `tables`, which are given with their columns.

    Also returns how often each of these occurs. There are no paths if the statement is not understood.
    """
    from sqlglot import errors, exp, parse_one

    try:
        tree = parse_one(text, dialect="duckdb")
    except (errors.SqlglotError, RecursionError):
        return [], {}
    if not isinstance(tree, exp.Query) or tree.find(exp.TableSample, exp.Pivot, exp.Command) is not None:
        return [], {}
    return _Reader(tree, {name.lower(): (name, columns) for name, columns in tables.items()}).paths()


class _Reader:
    def __init__(self, tree: exp.Query, tables: Mapping[str, tuple[str, Collection[str]]]) -> None:
        self._tree = tree
        self._tables = tables
        self._columns = {
            name: {column.lower(): column for column in columns} for name, columns in tables.values()
        }
        #: by the identity of a node
        self._occurrences: dict[int, _Occurrence] = {}
        self._scopes: dict[int, _Scope] = {}
        #: giver and receiver
        self._edges: set[tuple[_Place, _Place]] = set()

    def paths(self) -> tuple[list[KeyPath], dict[str, int]]:
        from sqlglot import exp

        counts = self._count()
        if counts is None:
            return [], {}
        for select in self._tree.find_all(exp.Select):  # breadth first: parents come before children
            self._read(select)
        for scope in self._scopes.values():
            if scope.is_readable:
                self._join(scope)
        found = []
        pairs = {
            (giver.occurrence.table, giver.column, to.occurrence.table, to.column)
            for giver, to in self._edges
        }
        for giver, key, receiver, column in sorted(pairs):
            # All occurrences of the receiver must use keys of an occurrence of the giver.
            sources = [_Place(_Occurrence(giver, number), key) for number in range(counts[giver])]
            targets = [_Place(_Occurrence(receiver, number), column) for number in range(counts[receiver])]
            if giver != receiver and all(
                any((source, target) in self._edges for source in sources) for target in targets
            ):
                found.append(KeyPath(giver, key, receiver, column))
        return found, counts

    def _count(self) -> dict[str, int] | None:
        """How often each table occurs; None if this may differ from the number of scans."""
        from sqlglot import exp

        shared = {cte.alias.lower(): 0 for cte in self._tree.find_all(exp.CTE)}
        if len(shared) < len(list(self._tree.find_all(exp.CTE))) or not shared.keys().isdisjoint(
            self._tables
        ):
            return None
        if any(found.recursive for found in self._tree.find_all(exp.With)):
            return None
        counts: dict[str, int] = {}
        for node in self._tree.find_all(exp.Table):
            name = node.name.lower()
            if not node.args.get("db") and name in shared:
                shared[name] += 1
            elif (
                node.args.get("db")
                or name not in self._tables
                or not isinstance(node.this, (exp.Identifier, exp.Literal))
            ):
                if shared:  # a view may contain more
                    return None
            else:
                table = self._tables[name][0]
                self._occurrences[id(node)] = _Occurrence(table, counts.get(table, 0))
                counts[table] = counts.get(table, 0) + 1
        # A CTE that is named twice may be read twice, with different conditions, and an unused one not at
        # all.
        return counts if all(number == 1 for number in shared.values()) else None

    def _read(self, select: exp.Select) -> None:
        """The sources of a SELECT."""
        from sqlglot import exp

        above = select.parent_select
        scope = _Scope(select, self._scopes.get(id(above)) if above is not None else None)
        self._scopes[id(select)] = scope
        begin = select.args.get("from_") or select.args.get("from")
        if begin is None:
            scope.is_readable = False
            return
        self._add(scope, begin.this, inner=True)
        for join in select.args.get("joins") or ():
            side, kind = join.side.upper(), join.kind.upper()
            if (
                join.method
                or side not in ("", "LEFT")
                or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")
            ):
                scope.is_readable = False
                return
            self._add(scope, join.this, inner=not side and kind in ("", "INNER", "CROSS"))
        if select.args.get("laterals"):
            for lateral in select.args["laterals"]:
                scope.sources[lateral.alias.lower()] = None
        scope.is_readable = scope.is_readable and not isinstance(begin.this, exp.Lateral)

    def _add(self, scope: _Scope, source: Any, *, inner: bool) -> None:
        from sqlglot import exp

        name = source.alias_or_name.lower()
        found = self._occurrences.get(id(source))
        alias = source.args.get("alias")
        renamed = isinstance(alias, exp.TableAlias) and alias.args.get("columns")
        if not name or name in scope.sources or source.args.get("joins") or renamed:
            scope.is_readable = False  # ambiguous names, a join in parentheses, renamed columns
            return
        scope.sources[name] = found
        if found is not None and inner:
            scope.inner.add(found)

    def _join(self, scope: _Scope) -> None:
        """Collect the conditions of a SELECT."""
        from sqlglot import exp

        equal: list[tuple[_Place, _Place]] = []
        seen = {next(iter(scope.sources))}
        for join in scope.select.args.get("joins") or ():
            joined = scope.sources[join.this.alias_or_name.lower()]
            pairs = [*self._equalities(scope, join.args.get("on")), *self._using(scope, join, seen, joined)]
            seen.add(join.this.alias_or_name.lower())
            for one, other in pairs:
                if (
                    one.occurrence in scope.inner
                    and other.occurrence in scope.inner
                    and joined in scope.inner
                ):
                    equal.append((one, other))
                    continue
                # LEFT, SEMI and ANTI: only matching rows of the joined table count.
                kept, taken = (other, one) if one.occurrence == joined else (one, other)
                if joined is not None and taken.occurrence == joined and kept.occurrence in scope.inner:
                    self._edges.add((kept, taken))
                    if join.kind.upper() == "SEMI":
                        self._edges.add((taken, kept))
        where = scope.select.args.get("where")
        for one, other in self._equalities(scope, where.this if where else None):
            if one.occurrence in scope.inner and other.occurrence in scope.inner:
                equal.append((one, other))
            elif one.occurrence in scope.inner or other.occurrence in scope.inner:
                self._correlate(scope, *((one, other) if one.occurrence in scope.inner else (other, one)))
        for node in _conjuncts(where.this if where else None):
            if isinstance(node, exp.In):
                self._member(scope, node)
        self._edges.update(_closed(equal))

    def _correlate(self, scope: _Scope, own: _Place, outer: _Place) -> None:
        """A condition of a subquery that compares one of its columns with one of the outer query."""
        if outer.occurrence in scope.sources.values():
            return
        self._edges.add((outer, own))
        above = scope.parent
        if above is not None and outer.occurrence in above.inner and _must_exist(above.select, scope.select):
            self._edges.add((own, outer))

    def _member(self, scope: _Scope, node: exp.In) -> None:
        """``column IN (SELECT column ...)``."""
        from sqlglot import exp

        query = node.args.get("query")
        select = query.this if isinstance(query, exp.Subquery) else query
        inside = self._scopes.get(id(select))
        if inside is None or not inside.is_readable or len(select.expressions) != 1:
            return
        tested = self._place(scope, node.this)
        given = self._place(inside, select.expressions[0].unalias())
        if (
            tested is None
            or given is None
            or tested.occurrence not in scope.inner
            or given.occurrence not in inside.inner
        ):
            return
        self._edges.add((given, tested))
        if not any(
            select.args.get(part)
            for part in ("group", "having", "qualify", "limit", "offset", "distinct", "windows")
        ):
            self._edges.add((tested, given))

    def _using(
        self, scope: _Scope, join: exp.Join, before: Collection[str], joined: _Occurrence | None
    ) -> Iterator[tuple[_Place, _Place]]:
        """The equalities of ``JOIN ... USING (column)``."""
        sources = [scope.sources[name] for name in before]
        if joined is None or None in sources:
            return
        for identifier in join.args.get("using") or ():
            column = identifier.name.lower()
            holders = [
                source for source in sources if source is not None and column in self._columns[source.table]
            ]
            if len(holders) == 1 and column in self._columns[joined.table]:
                yield (
                    _Place(holders[0], self._columns[holders[0].table][column]),
                    _Place(joined, self._columns[joined.table][column]),
                )

    def _equalities(self, scope: _Scope, condition: Any) -> Iterator[tuple[_Place, _Place]]:
        """Columns that a condition compares for equality, where all parts must be true."""
        from sqlglot import exp

        for node in _conjuncts(condition):
            if isinstance(node, exp.EQ):
                one, other = self._place(scope, node.left), self._place(scope, node.right)
                if one is not None and other is not None and one.occurrence != other.occurrence:
                    yield one, other

    def _place(self, scope: _Scope, node: Any) -> _Place | None:
        """The column that a node refers to; None if uncertain."""
        from sqlglot import exp

        node = node.unnest()
        if not isinstance(node, exp.Column) or node.args.get("db") or isinstance(node.this, exp.Star):
            return None
        column, qualifier = node.name.lower(), node.table.lower()
        within: _Scope | None = scope
        while within is not None and within.is_readable:
            if qualifier:
                if self._may_have(within, qualifier):
                    return None  # a field of a struct of this name
                if qualifier in within.sources:
                    return self._of(within.sources[qualifier], column)
                if None in within.sources.values():
                    return None
            else:
                if None in within.sources.values():
                    return None  # which may have a column of this name
                holders = [
                    source
                    for source in within.sources.values()
                    if source is not None and column in self._columns[source.table]
                ]
                if holders:
                    return self._of(holders[0], column) if len(holders) == 1 else None
                if _may_rename_to(within.select, column):
                    return None  # WHERE in DuckDB prefers aliases of SELECT to columns of outer queries
            within = within.parent
        return None

    def _of(self, occurrence: _Occurrence | None, column: str) -> _Place | None:
        if occurrence is None or column not in self._columns[occurrence.table]:
            return None
        return _Place(occurrence, self._columns[occurrence.table][column])

    def _may_have(self, scope: _Scope, column: str) -> bool:
        return any(
            source is not None and column in self._columns[source.table] for source in scope.sources.values()
        )


def _may_rename_to(select: exp.Select, name: str) -> bool:
    """Whether a result of a SELECT may have this new name."""
    from sqlglot import exp

    for result in select.expressions:
        if result.alias.lower() == name or result.find(exp.Columns) is not None:
            return True
        if any(star.args.get("rename") or star.args.get("replace") for star in result.find_all(exp.Star)):
            return True
    return False


def _conjuncts(condition: Any) -> Iterator[Any]:
    """The parts of a condition that must all be true."""
    from sqlglot import exp

    pending = [] if condition is None else [condition]
    while pending:
        node = pending.pop().unnest()
        if isinstance(node, exp.And):
            pending += [node.left, node.right]
        elif isinstance(node, exp.Or):
            yield from _common(node)
        else:
            yield node


def _common(node: Any) -> Iterator[Any]:
    """The parts that all sides of an OR have in common."""
    from sqlglot import exp

    sides = [list(_conjuncts(side)) for side in (node.left, node.right)]
    yield from (
        found for found in sides[0] if isinstance(found, exp.EQ) and any(found == other for other in sides[1])
    )


def _must_exist(outer: exp.Select, inner: exp.Select) -> bool:
    """Whether rows of `outer` only produce results if `inner` finds a row for them."""
    from sqlglot import exp

    parent = inner.parent
    where = outer.args.get("where")
    if isinstance(parent, exp.Subquery):
        parent = parent.parent
    if not isinstance(parent, exp.Exists) or where is None:
        return False
    # An aggregate without groups also returns a row for empty input.
    if any(inner.args.get(part) for part in ("group", "having", "qualify", "limit", "offset")):
        return False
    plain = all(
        isinstance(found.unalias(), (exp.Star, exp.Column, exp.Literal)) for found in inner.expressions
    )
    return plain and any(found is parent for found in _conjuncts(where.this))


def _closed(equal: list[tuple[_Place, _Place]]) -> Iterator[tuple[_Place, _Place]]:
    """The transitive closure of pairs of equal columns."""
    classes: dict[_Place, set[_Place]] = {}
    for one, other in equal:
        both = classes.get(one, {one}) | classes.get(other, {other})
        classes.update(dict.fromkeys(both, both))
    for one, same in classes.items():
        yield from ((one, other) for other in same if other.occurrence != one.occurrence)
