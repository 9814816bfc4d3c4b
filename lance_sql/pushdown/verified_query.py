"""Queries that run with and without pushdowns, whose rows must be the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from lance_sql.errors import SqlError
from lance_sql.pushdown.settings import DISABLED, VERIFY
from lance_sql.types.python_values import rows_of

if TYPE_CHECKING:
    from lance_sql.engines.base import Query
    from lance_sql.engines.statement_run import StatementRun

#: Digits of floating-point numbers that are compared: their sums depend on the order of rows.
_DIGITS = 9


class Verification(NamedTuple):
    """How the rows of a query are compared.

    `any_rows`: LIMIT without an order that decides which rows these are, so that only their number is
    certain.
    """

    any_rows: bool


class VerifiedQuery:
    """`query`, whose rows must be those of `plain`, which is planned and run in a block of `without`."""

    def __init__(
        self,
        query: Query,
        plain: Callable[[], Query],
        without: Callable[[], AbstractContextManager[None]],
        begin: Callable[[], StatementRun],
        verification: Verification,
    ) -> None:
        self._query = query
        self._plain = plain
        self._without = without
        self._begin = begin
        self._verification = verification

    def schema(self) -> pa.Schema:
        return self._query.schema()

    def kinds(self) -> Sequence[Any]:
        return self._query.kinds()

    def to_table(self, run: StatementRun) -> pa.Table:
        found = self._query.to_table(run)
        kinds = self._query.kinds()
        with self._without():
            expected = self._plain().to_table(self._begin())
        check_same(found, expected, kinds, self._verification)
        return found

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        rows = self.to_table(run)
        return rows.schema, iter(rows.to_batches())


def check_same(found: pa.Table, expected: pa.Table, kinds: Sequence[Any], verification: Verification) -> None:
    """SqlError if the rows with pushdowns are not those without them."""
    if found.schema.names != expected.schema.names or found.schema.types != expected.schema.types:
        raise _different(f"the columns are {found.schema.types} instead of {expected.schema.types}")
    if found.num_rows != expected.num_rows:
        raise _different(f"{found.num_rows:,} rows instead of {expected.num_rows:,}")
    if verification.any_rows:
        return
    ours, theirs = (Counter(map(_comparable, rows_of(rows, kinds))) for rows in (found, expected))
    if ours != theirs:
        more, missing = ours - theirs, theirs - ours
        raise _different(
            f"{more.total():,} of {found.num_rows:,} rows differ, such as {next(iter(more))} instead of "
            f"{next(iter(missing))}"
        )


def _different(what: str) -> SqlError:
    return SqlError(
        f"Pushdowns change the result: {what}",
        remedy=f"This is a bug: please report the statement. SET {DISABLED} = 'all' gives the result without "
        f"them; RESET {VERIFY} ends the comparison",
    )


def _comparable(value: Any) -> Any:
    """A value that equals those that are as good as the same."""
    if isinstance(value, float):
        return "nan" if value != value else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, dict):
        return tuple((_comparable(key), _comparable(item)) for key, item in value.items())
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
