"""Results of statements: a row count, or the rows of RETURNING."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.statements.session import Rows, Session
from lance_sql.syntax.source import as_written

if TYPE_CHECKING:
    from sqlglot import exp


def counted(rows: int) -> pa.Table:
    """The result of a statement that changed this many rows."""
    return pa.table({"Count": pa.array([rows], pa.int64())})


def done() -> pa.Table:
    """The result of a statement that does not affect rows."""
    return pa.table({"Success": pa.array([], pa.bool_())})


class Counter:
    """Counts the rows of batches that pass through, and optionally keeps them."""

    def __init__(self, keep: bool = False) -> None:
        self.rows = 0
        self.batches: list[pa.RecordBatch] = []
        self._keep = keep

    def through(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(reader.schema, self._count(reader))

    def _count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            if self._keep:
                self.batches.append(batch)
            yield batch


def check_returning(session: Session, returning: exp.Returning | None, rows: pa.Table, name: str) -> None:
    """Raise an error for RETURNING that cannot be answered, before the statement changes anything.

    `rows` has no rows, and the columns of those that are affected.
    """
    from sqlglot import exp

    if returning is None:
        return
    for kind, what in ((exp.Query, "a subquery"), (exp.Window, "window functions"), (exp.Explode, "UNNEST")):
        if returning.find(kind) is not None:
            raise _not_in_returning(what)
    if returned(session, returning, rows, name).arrow().num_rows:  # only aggregates make a row of none
        raise _not_in_returning("aggregate functions")


def _not_in_returning(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"RETURNING does not support {what}",
        remedy="Return the columns, and compute with the rows of the result",
    )


def returned(session: Session, returning: exp.Returning, rows: pa.Table, name: str) -> Rows:
    """``RETURNING expressions``, computed from the affected rows; `name` is the name of the table in them."""
    from lance_sql.text.tokens import quote

    expressions = ", ".join(map(as_written, returning.expressions))
    computing = session.computing()
    with computing.lend(rows) as lent:
        result = computing.select(f"SELECT {expressions} FROM {lent} AS {quote(name)}")
        result.run()
    return result
