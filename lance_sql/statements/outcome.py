"""Results of statements: a row count, or the rows of RETURNING."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    """Counts the rows of batches that pass through.

    `answer` computes RETURNING from all of them after the last one, before the writer commits: if it fails,
    so does the statement, and nothing has changed.
    """

    def __init__(self, answer: Callable[[list[pa.RecordBatch]], Rows] | None = None) -> None:
        self.rows = 0
        self._answer = answer
        self.returned: Rows | None = None

    def through(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(reader.schema, self._count(reader))

    def _count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept = []
        for batch in batches:
            self.rows += batch.num_rows
            if self._answer is not None:
                kept.append(batch)
            yield batch
        if self._answer is not None:
            self.returned = self._answer(kept)


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
    """``RETURNING expressions``, computed from the affected rows; `name` is the name of the table in them.

    To be called before the changes are committed: an error must leave the table as it was.
    """
    from lance_sql.text.tokens import quote

    expressions = ", ".join(map(as_written, returning.expressions))
    computing = session.computing()
    with computing.lend(rows) as lent:
        result = computing.select(f"SELECT {expressions} FROM {lent} AS {quote(name)}")
        result.run(raises=True)
    return result
