"""The source of a MERGE: any table expression, joins and functions included, and what clauses see of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from lance_engine.errors import LanceError
from lance_engine.scan import SYSTEM_FIELDS

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.engines.base import Parameters
from lance_sql.errors import SqlError
from lance_sql.statements.session import Session
from lance_sql.statements.targets import name_of
from lance_sql.syntax.source import as_written, rename
from lance_sql.text.tokens import quote, tokenize

if TYPE_CHECKING:
    from sqlglot import exp

#: What DuckDB calls tables that the statement does not name.
_UNNAMED = ("unnamed_subquery", "unnamed_subquery2", "valueslist")


class MergeSource:
    """What USING names; the engine is asked for its columns only when a clause needs them."""

    def __init__(
        self, session: Session, statement: exp.Merge, dataset: SqlDataset, params: Parameters
    ) -> None:
        self._session = session
        self._statement = statement
        self._target = name_of(statement.this)
        self._dataset = dataset
        self._params = params
        self._using: exp.Expression = statement.args["using"]
        #: The table expression, for FROM.
        self.text = as_written(self._using)
        before = statement.args.get("with_")
        #: The CTEs that it may use.
        self.before = f"{as_written(before)} " if before is not None else ""

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns of ``*``, each with its text in expressions of the statement."""
        names = [name for name in self._bound("*", self.text) if name not in SYSTEM_FIELDS]
        folded = [name.lower() for name in names]
        repeated = next((name for name in names if folded.count(name.lower()) > 1), None)
        if repeated is not None:
            raise SqlError(
                f"The source has several columns {repeated}",
                remedy="List the columns and their values, as in INSERT (a) VALUES (s.a)",
            )
        owners: dict[str, list[str]] = {}
        for table, owned in self._tables.items():
            for name in owned:
                owners.setdefault(name.lower(), []).append(f"{quote(table)}.{quote(name)}")
        texts_by_name = {}
        for name in names:
            texts = owners.get(name.lower(), [quote(name)])
            # JOIN ... USING merges columns, each null where its table has no row.
            texts_by_name[name] = texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"
        return texts_by_name

    @cached_property
    def _tables(self) -> dict[str, list[str]]:
        """The columns of each table of the source that expressions can name."""
        columns_by_table = {}
        for candidate in dict.fromkeys(_called(self._using)):
            try:
                columns_by_table[candidate] = self._bound(f"{quote(candidate)}.*", self.text)
            except LanceError:  # not what the engine calls it
                continue
        return columns_by_table

    def scope(self, situation: str, clause: Sequence[exp.Expression]) -> None:
        """Let the expressions of a clause see what DuckDB lets them see; SqlError if they use anything else.

        INSERT sees the source only, and WHEN NOT MATCHED BY SOURCE only the dataset. A plain name that both
        have means the column of the one that is seen.
        """
        columns = [column for part in clause for column in _columns(part)]
        own = {name.lower(): f"{quote(self._target)}.{quote(name)}" for name in self._dataset.schema.names}
        firsts = [column.parts[0].name.lower() for column in columns]
        if situation == "both" or not columns:
            return
        texts = ", ".join(map(as_written, clause))
        if situation == "source":
            if {self._target.lower(), *own}.isdisjoint(firsts):
                return
            self._bound(texts, self.text)
            seen = {name.lower(): text for name, text in self.columns.items()}
            tables = {name.lower() for name in self._tables}
        else:
            if not all(first in own or first == self._target.lower() for first in firsts):
                with self._session.computing().lend(self._dataset) as lent:
                    self._bound(texts, f"{lent} AS {quote(self._target)}")
            seen, tables = own, {self._target.lower()}
        for column, first in zip(columns, firsts, strict=True):
            if first in seen and not (len(column.parts) > 1 and first in tables):
                rename(self._statement, [column.parts[0]], seen[first])

    def _bound(self, what: str, table: str) -> list[str]:
        """The columns of a query that is bound, but not run."""
        text = f"{self.before}SELECT {what} FROM {table} LIMIT 0"
        params = self._params if "$" in text or "?" in text else None
        return self._session.computing().select(text, params).columns


def _called(table: exp.Expression) -> Iterator[str]:
    """What the tables of a source may be called."""
    from sqlglot import exp

    alias = table.alias
    inner = table.this
    if alias:
        yield alias
    elif isinstance(table, exp.Subquery) and isinstance(inner, exp.Table | exp.Subquery | exp.Values):
        yield from _called(inner)
    else:
        [first, *_] = tokenize(as_written(table))
        yield from (table.name, PurePath(table.name).stem, first.value, *_UNNAMED)
    joined: Iterable[exp.Expression] = table.args.get("joins") or ()
    for join in joined:
        yield from _called(join.this)


def _columns(part: exp.Expression) -> Iterator[exp.Column]:
    """The columns of a part whose names do not mean something else, as those within subqueries may."""
    from sqlglot import exp

    for column in part.find_all(exp.Column):
        is_outer = column.find_ancestor(exp.Query, exp.Comprehension) is None
        if is_outer and isinstance(column.this, exp.Identifier):
            yield column
