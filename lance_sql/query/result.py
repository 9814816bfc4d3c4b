"""The result of a statement, the same for every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.errors import LanceError

from lance_sql.engines.base import Query
from lance_sql.query.display import html_table, text_table

if TYPE_CHECKING:
    import pandas as pd

    from lance_sql.query.explanation import Explanation

#: Rows shown by `QueryResult.show` and in notebooks.
_SHOWN_ROWS = 20


class QueryResult:
    """Rows of a statement; run at the first call that needs them.

    `arrow` and what is built on it run the statement once and keep the rows. Iterating streams record batches
    without keeping them; if the connection is used again in between, the rest of the stream is read into
    memory first.
    """

    def __init__(
        self, query: Query, explain: Callable[[], Explanation], opened: Callable[[Stream], None]
    ) -> None:
        self._query = query
        self._explain = explain
        #: told of every stream that is opened over the running statement
        self._opened = opened
        self._table: pa.Table | None = None
        self._error: LanceError | None = None
        self._cursor = 0

    def arrow(self) -> pa.Table:
        """All rows as a pyarrow table."""
        self.run()
        if self._error is not None:
            raise self._error
        assert self._table is not None
        return self._table

    def df(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame."""
        return self.arrow().to_pandas()

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches."""
        if self._table is not None or self._error is not None:
            return self.arrow().to_reader()
        stream = Stream(self._query)
        self._opened(stream)
        return pa.RecordBatchReader.from_batches(stream.schema, stream)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.reader())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The remaining rows as tuples of Python values."""
        rows = self._rows(self._cursor, None)
        self._cursor += len(rows)
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row as a tuple, None behind the last."""
        rows = self._rows(self._cursor, 1)
        self._cursor += len(rows)
        return rows[0] if rows else None

    def _rows(self, start: int, count: int | None) -> list[tuple[Any, ...]]:
        table = self.arrow().slice(start, count)
        if table.num_columns == 0:
            return []
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    @property
    def columns(self) -> list[str]:
        """The column names."""
        return list(self.arrow().schema.names)

    def explain(self) -> Explanation:
        """The plan of the statement, as it would be planned now."""
        return self._explain()

    def show(self, max_rows: int = _SHOWN_ROWS) -> None:
        """Print the first rows as a table."""
        print(text_table(self.arrow(), max_rows))

    def __repr__(self) -> str:
        return text_table(self.arrow(), _SHOWN_ROWS)

    def _repr_html_(self) -> str:
        return html_table(self.arrow(), _SHOWN_ROWS)

    def run(self) -> None:
        """Run the statement unless done; an error is kept for those who ask for the rows."""
        if self._table is None and self._error is None:
            try:
                self._table = self._query.to_table()
            except LanceError as error:
                self._error = error


class Stream:
    """The batches of a query while it runs; can be told to read the rest at once."""

    def __init__(self, query: Query) -> None:
        self.schema, batches = query.stream()
        self._source = self._read(batches, query)

    @staticmethod
    def _read(batches: Iterator[pa.RecordBatch], query: Query) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            raise query.translate(error) from None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._source)

    def read_ahead(self) -> None:
        self._source = iter(list(self._source))
