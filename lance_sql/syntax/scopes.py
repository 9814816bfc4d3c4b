"""The scopes of a query, with the datasets and columns that its names refer to.

A name is bound where it certainly means a column of a dataset, whatever settings, views and other tables
there are; other names are unknown. Engine plans are not used: they refer to columns by aliases, which can be
ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lance_sql.syntax.tree import Tree

if TYPE_CHECKING:
    from sqlglot import exp

#: Which names are the same: those that only differ in case; or those in lower case, unless they are quoted;
#: or only names with the same characters.
Names = Literal["any case", "lower case", "exact"]


class Occurrence(NamedTuple):
    """An occurrence of a dataset in a statement: its registered name, and the number of the occurrence."""

    table: str
    number: int


class Place(NamedTuple):
    """A column of an occurrence of a dataset."""

    occurrence: Occurrence
    column: str


@dataclass(slots=True)
class Scope:
    """A SELECT: its sources by the names with which columns may be qualified."""

    select: exp.Select
    parent: Scope | None
    #: None for sources that are not datasets
    sources: dict[str, Occurrence | None] = field(default_factory=dict)
    #: sources of inner joins: only their rows that have a match count
    inner: set[Occurrence] = field(default_factory=set)
    #: whether all sources are known, and no names are ambiguous
    is_readable: bool = True


class BoundQuery:
    """A query over `tables`, the columns of datasets by registered name.

    Without scopes if the statement is not understood. `counts` are how often it names each dataset; None if
    this may differ from the number of scans.
    """

    def __init__(self, tree: Tree, tables: Mapping[str, Sequence[str]], names: Names) -> None:
        from sqlglot import exp

        self.tree = tree
        self._names = names
        self._of_tables = tables
        self._tables = _by_key(names, tables)
        self._columns = {table: _by_key(names, columns) for table, columns in tables.items()}
        #: by the identity of a node
        self._occurrences: dict[int, Occurrence] = {}
        self._scopes: dict[int, Scope] = {}
        self.counts: dict[str, int] | None = None
        root = tree.root
        unknown = (exp.TableSample, exp.Pivot, exp.Command, exp.PositionalColumn)
        if not isinstance(root, exp.Query) or root.find(*unknown) is not None:
            return
        if any(isinstance(node, exp.Select) and node.args.get("sample") for node in root.walk()):
            return
        self.counts = self._count(root)
        for select in root.find_all(exp.Select):  # breadth first: parents come before children
            self._read(select)

    @property
    def scopes(self) -> Iterator[Scope]:
        """The scopes that are understood; those outside come before those inside."""
        return (scope for scope in self._scopes.values() if scope.is_readable)

    def scope(self, select: object) -> Scope | None:
        """The scope of a SELECT."""
        known = self._scopes.get(id(select))
        return known if known is not None and known.is_readable else None

    def occurrence(self, source: object) -> Occurrence | None:
        """The dataset that a table in FROM is."""
        return self._occurrences.get(id(source))

    def columns_of(self, table: str) -> Sequence[str]:
        """The columns of a dataset."""
        return self._of_tables[table]

    def named_once(self, table: str) -> bool:
        """Whether the statement certainly names a dataset once."""
        return self.counts is not None and self.counts.get(table) == 1

    def key(self, name: Any) -> str:
        """What a name and others that mean the same have in common."""
        if isinstance(name, str):
            return name.lower() if self._names == "any case" else name
        text = str(name.name)
        if self._names == "any case" or (self._names == "lower case" and not name.args.get("quoted")):
            return text.lower()
        return text

    def _count(self, root: exp.Query) -> dict[str, int] | None:
        from sqlglot import exp

        shared = {self._alias(cte): 0 for cte in root.find_all(exp.CTE)}
        if len(shared) < len(list(root.find_all(exp.CTE))) or not shared.keys().isdisjoint(self._tables):
            return None
        if any(clause.args.get("recursive") for clause in root.find_all(exp.With)):
            return None
        counts: dict[str, int] = {}
        for node in root.find_all(exp.Table):
            if not isinstance(node.this, exp.Identifier):
                if shared:  # a view may contain more
                    return None
                continue
            name = self.key(node.this)
            if not node.args.get("db") and name in shared:
                shared[name] += 1
            elif self._is_plain(node) and name in self._tables:
                table = self._tables[name]
                if table is None:
                    return None
                self._occurrences[id(node)] = Occurrence(table, counts.get(table, 0))
                counts[table] = counts.get(table, 0) + 1
            elif shared:
                return None
        # A CTE that is named twice may be read twice, with different conditions, and an unused one not at
        # all.
        return counts if all(number == 1 for number in shared.values()) else None

    def _is_plain(self, node: exp.Table) -> bool:
        """Whether a table in FROM is just a name, perhaps with an alias."""
        return not any(value for name, value in node.args.items() if name not in ("this", "alias", "joins"))

    def _alias(self, source: Any) -> str:
        """The key of the name with which columns of a source may be qualified; "" without one."""
        from sqlglot import exp

        alias = source.args.get("alias")
        name = alias.this if isinstance(alias, exp.TableAlias) else alias
        if name is None and isinstance(source, exp.Table):
            name = source.this
        return self.key(name) if isinstance(name, exp.Identifier) else ""

    def _read(self, select: exp.Select) -> None:
        """The sources of a SELECT."""
        from sqlglot import exp

        above = select.parent_select
        scope = Scope(select, self._scopes.get(id(above)) if above is not None else None)
        self._scopes[id(select)] = scope
        begin = select.args.get("from_")
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
        for lateral in select.args.get("laterals") or ():
            scope.sources[self._alias(lateral)] = None
        scope.is_readable = scope.is_readable and not isinstance(begin.this, exp.Lateral)

    def _add(self, scope: Scope, source: Any, *, inner: bool) -> None:
        from sqlglot import exp

        name = self._alias(source)
        occurrence = self._occurrences.get(id(source))
        alias = source.args.get("alias")
        renamed = isinstance(alias, exp.TableAlias) and alias.args.get("columns")
        if not name or name in scope.sources or source.args.get("joins") or renamed:
            scope.is_readable = False  # ambiguous names, a join in parentheses, renamed columns
            return
        scope.sources[name] = occurrence
        if occurrence is not None and inner:
            scope.inner.add(occurrence)

    def source(self, scope: Scope, joined: Any) -> Occurrence | None:
        """The dataset of a source of a scope."""
        return scope.sources.get(self._alias(joined))

    def holder(self, name: Any, occurrence: Occurrence) -> Place | None:
        """The column of an occurrence that a name refers to if it refers to one of its columns."""
        column = self._columns[occurrence.table].get(self.key(name))
        return None if column is None else Place(occurrence, column)

    def column(self, scope: Scope, node: Any) -> Place | None:
        """The column that a node in a scope refers to; None if uncertain."""
        from sqlglot import exp

        node = node.unnest()
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        if node.args.get("db"):
            return None
        qualifier = node.args.get("table")
        within: Scope | None = scope
        while within is not None and within.is_readable:
            if qualifier is not None:
                if self._may_have(within, qualifier):
                    return None  # a field of a struct of this name
                key = self.key(qualifier)
                if key in within.sources:
                    occurrence = within.sources[key]
                    return None if occurrence is None else self.holder(node.this, occurrence)
                if None in within.sources.values():
                    return None
            else:
                if None in within.sources.values():
                    return None  # which may have a column of this name
                if self.key(node.this) in within.sources:
                    return None  # all columns of the table as one value, or a column of this name
                sources = [source for source in within.sources.values() if source is not None]
                if any(self._is_ambiguous(node.this, source) for source in sources):
                    return None
                places = [place for source in sources if (place := self.holder(node.this, source))]
                if places:
                    return places[0] if len(places) == 1 else None
                if self._may_rename_to(within.select, node.this):
                    return None  # WHERE in DuckDB prefers aliases of SELECT to columns of outer queries
            within = within.parent
        return None

    def _may_have(self, scope: Scope, name: Any) -> bool:
        return any(
            source is not None and self.key(name) in self._columns[source.table]
            for source in scope.sources.values()
        )

    def _is_ambiguous(self, name: Any, source: Occurrence) -> bool:
        columns = self._columns[source.table]
        return self.key(name) in columns and columns[self.key(name)] is None

    def _may_rename_to(self, select: exp.Select, name: Any) -> bool:
        """Whether a result of a SELECT may have this new name."""
        from sqlglot import exp

        for result in select.expressions:
            if result.alias.lower() == str(name.name).lower() or result.find(exp.Columns) is not None:
                return True
            if any(star.args.get("rename") or star.args.get("replace") for star in result.find_all(exp.Star)):
                return True
        return False


def _by_key(names: Names, known: Mapping[str, object] | Sequence[str]) -> dict[str, str | None]:
    """Names by the key with which they are found; None where two have the same."""
    by_key: dict[str, str | None] = {}
    for name in known:
        # DataFusion knows tables by their names and by these in lower case.
        keys = {name.lower()} if names == "any case" else {name}
        if names != "any case" and isinstance(known, Mapping):
            keys.add(name.lower())
        for key in keys:
            by_key[key] = None if key in by_key else name
    return by_key


def conjuncts(condition: Any) -> Iterator[Any]:
    """The parts of a condition that must all be true, as they are written, without brackets around them."""
    from sqlglot import exp

    pending = [] if condition is None else [condition]
    while pending:
        node = pending.pop().unnest()
        if isinstance(node, exp.And):
            pending += [node.right, node.left]
        else:
            yield node
