"""Finds columns of a query's tables that must be equal: keys of one table then restrict another.

Rows of a table that no result of the query depends on can be skipped. This module finds such restrictions for
columns that are compared in inner and semi joins and by correlated subqueries; others are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from lance_sql.engines.key_conditions import KeyPath
from lance_sql.syntax.scopes import BoundQuery, Occurrence, Place, Scope, conjuncts

if TYPE_CHECKING:
    from sqlglot import exp


def key_paths(query: BoundQuery) -> list[KeyPath]:
    """The paths between the datasets of a query."""
    counts = query.counts
    if not counts or len(counts) < 2:
        return []
    reader = _Reader(query)
    for scope in query.scopes:
        reader.read(scope)
    edges, key_paths = reader.edges, []
    pairs = {
        (build.occurrence.table, build.column, probe.occurrence.table, probe.column) for build, probe in edges
    }
    for build, key, probe, column in sorted(pairs):
        # All occurrences of the probe side must use keys of an occurrence of the build side.
        sources = [Place(Occurrence(build, number), key) for number in range(counts[build])]
        targets = [Place(Occurrence(probe, number), column) for number in range(counts[probe])]
        if build != probe and all(any((source, target) in edges for source in sources) for target in targets):
            key_paths.append(KeyPath(build, key, probe, column))
    return key_paths


class _Reader:
    def __init__(self, query: BoundQuery) -> None:
        self._query = query
        #: build and probe side
        self.edges: set[tuple[Place, Place]] = set()

    def read(self, scope: Scope) -> None:
        """Collect the conditions of a SELECT."""
        from sqlglot import exp

        equal: list[tuple[Place, Place]] = []
        seen = [next(iter(scope.sources.values()))]
        for join in scope.select.args.get("joins") or ():
            joined = self._query.source(scope, join.this)
            pairs = [*self._equalities(scope, join.args.get("on")), *self._using(join, seen, joined)]
            seen.append(joined)
            for one, other in pairs:
                if {one.occurrence, other.occurrence, joined} <= scope.inner:
                    equal.append((one, other))
                    continue
                # LEFT, SEMI and ANTI: only matching rows of the joined table count.
                kept, taken = (other, one) if one.occurrence == joined else (one, other)
                if joined is not None and taken.occurrence == joined and kept.occurrence in scope.inner:
                    self.edges.add((kept, taken))
                    if join.kind.upper() == "SEMI":
                        self.edges.add((taken, kept))
        where = scope.select.args.get("where")
        for one, other in self._equalities(scope, where.this if where else None):
            if one.occurrence in scope.inner and other.occurrence in scope.inner:
                equal.append((one, other))
            elif one.occurrence in scope.inner or other.occurrence in scope.inner:
                self._correlate(scope, *((one, other) if one.occurrence in scope.inner else (other, one)))
        for node in _all_true(where.this if where else None):
            if isinstance(node, exp.In):
                self._member(scope, node)
        self.edges.update(_closed(equal))

    def _correlate(self, scope: Scope, own: Place, outer: Place) -> None:
        """A condition of a subquery that compares one of its columns with one of the outer query."""
        if outer.occurrence in scope.sources.values():
            return
        self.edges.add((outer, own))
        above = scope.parent
        if above is not None and outer.occurrence in above.inner and _must_exist(above.select, scope.select):
            self.edges.add((own, outer))

    def _member(self, scope: Scope, node: exp.In) -> None:
        """``column IN (SELECT column ...)``."""
        from sqlglot import exp

        query = node.args.get("query")
        select: Any = query.this if isinstance(query, exp.Subquery) else query
        inside = self._query.scope(select)
        if inside is None or len(select.expressions) != 1:
            return
        tested = self._query.column(scope, node.this)
        given = self._query.column(inside, select.expressions[0].unalias())
        if (
            tested is None
            or given is None
            or tested.occurrence not in scope.inner
            or given.occurrence not in inside.inner
        ):
            return
        self.edges.add((given, tested))
        if not any(
            select.args.get(part)
            for part in ("group", "having", "qualify", "limit", "offset", "distinct", "windows")
        ):
            self.edges.add((tested, given))

    def _using(
        self, join: exp.Join, before: Collection[Occurrence | None], joined: Occurrence | None
    ) -> Iterator[tuple[Place, Place]]:
        """The equalities of ``JOIN ... USING (column)``."""
        if joined is None:
            return
        for name in join.args.get("using") or ():
            holders = [None if source is None else self._query.holder(name, source) for source in before]
            own = self._query.holder(name, joined)
            known = [holder for holder in holders if holder is not None]
            if None not in before and len(known) == 1 and own is not None:
                yield known[0], own

    def _equalities(self, scope: Scope, condition: Any) -> Iterator[tuple[Place, Place]]:
        """Columns that a condition compares for equality, where all parts must be true."""
        from sqlglot import exp

        for node in _all_true(condition):
            if isinstance(node, exp.EQ):
                one, other = self._query.column(scope, node.left), self._query.column(scope, node.right)
                if one is not None and other is not None and one.occurrence != other.occurrence:
                    yield one, other


def _all_true(condition: Any) -> Iterator[Any]:
    """The parts of a condition that must all be true, with those that all sides of an OR have in common."""
    from sqlglot import exp

    for node in conjuncts(condition):
        if isinstance(node, exp.Or):
            one, other = (list(_all_true(side)) for side in (node.left, node.right))
            yield from (equality for equality in one if isinstance(equality, exp.EQ) and equality in other)
        else:
            yield node


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
    plain = all(isinstance(item.unalias(), (exp.Star, exp.Column, exp.Literal)) for item in inner.expressions)
    return plain and any(item is parent for item in _all_true(where.this))


def _closed(equal: list[tuple[Place, Place]]) -> Iterator[tuple[Place, Place]]:
    """The transitive closure of pairs of equal columns."""
    classes: dict[Place, set[Place]] = {}
    for one, other in equal:
        both = classes.get(one, {one}) | classes.get(other, {other})
        classes.update(dict.fromkeys(both, both))
    for one, same in classes.items():
        yield from ((one, other) for other in same if other.occurrence != one.occurrence)
