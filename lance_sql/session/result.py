"""The result of a statement, the same for every engine."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa
from lance_engine.base import Public
from lance_engine.errors import LanceError

from lance_sql.display.formats import BINARY
from lance_sql.engines.base import Engine, Query
from lance_sql.engines.finished import Finished
from lance_sql.engines.statement_run import StatementRun
from lance_sql.session.metrics import final_metrics, scan_metrics
from lance_sql.session.reporting import reported
from lance_sql.types.columns import columns
from lance_sql.types.exact import plain_arrow
from lance_sql.types.python_values import (
    NUMBERS,
    check_widths,
    frame_dtype,
    is_alike_in_frames,
    rows_of,
    values_of,
)
from lance_sql.types.sources import exact_as_stored
from lance_sql.types.stored import stored_batches

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    import polars as pl
    from lance_engine.base import PlanPicture, ProgressOption

    from lance_sql.session.explanation import Explanation

#: Maximum number of rows shown by `QueryResult.show` and in notebooks.
_SHOWN_ROWS = 20
#: Rows converted to Python at once when they are fetched one by one.
_ROWS_AT_ONCE = 1024


class QueryResult(Public):
    """Rows of a statement, which runs when they are first read.

    `arrow` and the methods based on it run the statement once and keep the rows. Iterating streams record
    batches without keeping them; if the connection is used again meanwhile, the rest of the stream is read
    into memory first.
    """

    def __init__(
        self,
        query: Query,
        engine: Engine,
        explain: Callable[..., Explanation],
        opened: Callable[[Stream], None],
        progress: ProgressOption = None,
    ) -> None:
        self._query = query
        self._engine = engine
        self._explain = explain
        self._progress = progress
        self._last_run: StatementRun | None = None
        self._seconds: float | None = None
        #: whether integers that DuckDB's export to Arrow makes negative are an error
        self._is_checked = False
        #: reading other tables may run statements in the same session
        self._is_running = False
        #: called for every stream that is opened over the running statement
        self._opened = opened
        #: the rows, in which nothing is lost
        self._rows: pa.Table | None = None
        #: the same as the engine exports them
        self._table: pa.Table | None = None
        self._error: LanceError | None = None
        #: the DuckDB types of the columns, if the engine has them
        self._kinds: Sequence[Any] = ()
        self._cursor = 0
        #: some of the rows in Python, and the number of the first
        self._converted: tuple[int, list[tuple[Any, ...]]] = 0, []

    if not TYPE_CHECKING:  # type checkers see the real attributes only

        def __getattr__(self, name: str) -> Any:
            from lance_sql.other_names import RESULT, other_attribute

            return other_attribute(self, "A result", name, RESULT, dir(type(self)))

    def arrow(self) -> pa.Table:
        """All rows as a pyarrow table."""
        rows = self._exact()
        if self._table is None:
            if self._is_checked:
                check_widths(rows, self._kinds)
            self._table = plain_arrow(rows, self._kinds)
        return self._table

    def _exact(self) -> pa.Table:
        self.run(raises=True)
        assert self._rows is not None
        return self._rows

    def _finished(self) -> Finished:
        """The rows as the query of another result."""
        return Finished(self._exact(), self._kinds)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars DataFrame; the same as `pl`."""
        return self.pl()

    @overload
    def pl(self, lazy: Literal[False] = False) -> pl.DataFrame: ...
    @overload
    def pl(self, lazy: Literal[True]) -> pl.LazyFrame: ...
    def pl(self, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """All rows as a Polars DataFrame, or a LazyFrame over them if `lazy`; Polars must be installed."""
        from lance_sql.display.frames import to_polars

        frame = to_polars(self.arrow())
        return frame.lazy() if lazy else frame

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame; the same as `df`."""
        return self.df()

    def fetchdf(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame; the same as `df`."""
        return self.df()

    def fetchnumpy(self) -> dict[str, npt.NDArray[Any]]:
        """The columns as numpy arrays by name; a column with nulls is a masked array.

        If several columns have the same name, the last one is used.
        """
        return {name: _numpy(column) for name, column in zip(self.columns, self.arrow().columns, strict=True)}

    def df(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame; pandas must be installed."""
        from lance_sql.display.frames import of_python_values, to_pandas

        rows = self._exact()
        odd = {number for number, kind in enumerate(self._kinds) if not is_alike_in_frames(kind)}
        try:
            frame = to_pandas(_without(rows, odd) if odd else rows)
        except (
            ValueError,
            OverflowError,
        ):  # pandas cannot hold infinity, or a year that Python does not have
            odd = {number for number, kind in enumerate(self._kinds) if kind.id not in NUMBERS}
            if not odd:
                raise
            frame = to_pandas(_without(rows, odd))
        for number in odd:
            kind = self._kinds[number]
            frame.isetitem(number, of_python_values(values_of(rows.column(number), kind), frame_dtype(kind)))
        return frame

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches."""
        if self._rows is not None or self._error is not None:
            return self.arrow().to_reader()
        stream = self._stream()
        return pa.RecordBatchReader.from_batches(stream.schema, stream)

    def _stream(self, *, wants_stored: bool = False) -> Stream:
        run = self._last_run = self._engine.begin()
        run.wants_stored = wants_stored
        is_checked = self._is_checked and not wants_stored
        this = weakref.ref(self)

        def failed(error: LanceError) -> None:  # not to be run again, perhaps in a transaction that it aborts
            if (result := this()) is not None:
                result._error = error

        stream = Stream(self._query, run, self._engine.alone, failed, is_checked=is_checked)
        self._opened(stream)
        return stream

    def _stored_reader(self) -> pa.RecordBatchReader:
        """The rows as datasets store them."""
        kinds = self._query.kinds()
        if not kinds:
            return self.reader()
        if self._rows is not None or self._error is not None:
            rows = self._exact()
            return exact_as_stored(rows.to_batches(), rows.schema.names, kinds)
        stream = self._stream(wants_stored=True)
        names = stream.schema.names
        if not stream.run.has_stored:
            return exact_as_stored(stream, names, kinds)
        schema = columns(names, kinds)
        return pa.RecordBatchReader.from_batches(schema, stored_batches(stream, schema))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.reader())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The remaining rows as tuples of Python values."""
        rows = self._tuples(self._cursor, None)
        self._cursor += len(rows)
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row as a tuple, None after the last."""
        rows = self._tuples(self._cursor, 1)
        self._cursor += len(rows)
        return rows[0] if rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next `size` rows as tuples, fewer at the end."""
        rows = self._tuples(self._cursor, size)
        self._cursor += len(rows)
        return rows

    def _tuples(self, start: int, count: int | None) -> list[tuple[Any, ...]]:
        rows = self._exact()
        end = rows.num_rows if count is None else min(start + count, rows.num_rows)
        begin, known = self._converted
        if end > begin + len(known):
            begin = start
            known = rows_of(rows.slice(start, max(end - start, _ROWS_AT_ONCE)), self._kinds)
            self._converted = (begin, known) if count is not None else (0, [])
        return known[start - begin : end - begin]

    @property
    def columns(self) -> list[str]:
        """The column names."""
        return list(self._exact().schema.names)

    @property
    def types(self) -> list[pa.DataType]:
        """The Arrow types of the columns."""
        return list(self.arrow().schema.types)

    @overload
    def explain(self, analyze: bool = False, *, html: Literal[False] = False) -> Explanation: ...

    @overload
    def explain(self, analyze: bool = False, *, html: Literal[True]) -> PlanPicture: ...

    def explain(self, analyze: bool = False, *, html: bool = False) -> Explanation | PlanPicture:
        """The plan of the statement, if it were planned now; `analyze` runs it and adds metrics.

        With `html` it is a picture for notebooks: HTML that can also be written to a file.
        """
        explanation = self._explain(analyze=analyze)
        return explanation.picture() if html else explanation

    @property
    def metrics(self) -> dict[str, Any] | None:
        """What the last run read; None before the first run.

        The keys are ``seconds`` (None while rows are streamed), ``bytes_read`` and ``rows_read`` of all
        scans, and ``scans`` with the numbers of each, as in `lance_engine.metrics.ScanMetrics`.
        """
        if self._last_run is None:
            return None
        is_complete = self._seconds is not None
        scans = (final_metrics if is_complete else scan_metrics)(self._last_run.scans)
        return {
            "seconds": self._seconds,
            "bytes_read": sum(scan["bytes_read"] for scan in scans),
            "rows_read": sum(scan["rows_decoded"] for scan in scans),
            "scans": scans,
        }

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to the Parquet file `path`, which appears once it is complete."""
        self._write(path, "parquet")

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to the CSV file `path`, which appears once it is complete."""
        self._write(path, "csv")

    def _write(self, path: str | os.PathLike[str], format: str) -> None:
        from lance_sql.display.output import opened, write_rows

        with opened(os.fspath(path), binary=format in BINARY) as target:
            write_rows(self, format, target)

    def show(self, max_rows: int = _SHOWN_ROWS) -> None:
        """Print the first `max_rows` rows as a table."""
        from lance_sql.display.tables import text_table  # programs rarely show rows

        print(text_table(self.arrow(), max_rows))

    def __repr__(self) -> str:
        from lance_sql.display.tables import text_table

        return text_table(self.arrow(), _SHOWN_ROWS)

    def _repr_html_(self) -> str:
        from lance_sql.display.tables import html_table

        return html_table(self.arrow(), _SHOWN_ROWS)

    def run(self, *, raises: bool = False) -> None:
        """Run the statement unless done. An error is raised when rows are read, and now with `raises`."""
        if self._rows is None and self._error is None:
            self._run()
        if raises and self._error is not None:
            raise self._error

    def _run(self) -> None:
        # Other threads must not redefine names between the test of `is_running` and the run.
        with self._engine.alone:
            run = self._last_run = self._engine.begin()
            begin = time.perf_counter()
            self._is_running = True
            try:
                with reported(self._progress, run):
                    table = self._query.to_table(run)
                self._kinds, self._rows = self._query.kinds(), table
            except LanceError as error:
                self._error = error
            finally:
                self._is_running = False
            self._seconds = time.perf_counter() - begin


def _without(rows: pa.Table, columns: Collection[int]) -> pa.Table:
    """The rows with nulls in place of some columns."""
    arrays = [
        pa.nulls(rows.num_rows) if number in columns else column for number, column in enumerate(rows.columns)
    ]
    return pa.Table.from_arrays(arrays, names=rows.schema.names)


def _numpy(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    import numpy as np

    filled: npt.NDArray[Any] = column.to_numpy()
    if column.null_count == 0:
        return filled
    nulls = column.is_null().to_numpy()
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        # pyarrow converts these to floats and objects if there are nulls
        filled = column.fill_null(False if pa.types.is_boolean(kind) else 0).to_numpy()
    return np.ma.masked_array(filled, mask=nulls)


class Stream:
    """The batches of a running query; the rest can be read into memory at once.

    `alone` is held while the statement runs. `failed` learns of errors.
    """

    def __init__(
        self,
        query: Query,
        run: StatementRun,
        alone: AbstractContextManager[bool],
        failed: Callable[[LanceError], None],
        *,
        is_checked: bool,
    ) -> None:
        self.run = run
        self._alone = alone
        self._failed = failed
        with alone:  # that another thread uses the session does not end the statement
            try:
                self.schema, self._source = query.stream(run)
            except LanceError as error:
                failed(error)
                raise
        self._checked_kinds = query.kinds() if is_checked else ()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._alone:
            try:
                batch = next(self._source)
            except LanceError as error:
                self._failed(error)
                raise
        check_widths(batch, self._checked_kinds)
        return batch

    def read_ahead(self) -> None:
        with self._alone:
            self._source = iter(list(self._source))
        self._alone = nullcontext(True)  # the statement has run


# What sessions need of the results that they gave away.


def refuse_wide_integers(result: QueryResult) -> None:
    """Have `arrow` and streams of a result fail where DuckDB's export to Arrow makes integers negative."""
    result._is_checked = True


def is_of(result: QueryResult, engine: Engine) -> bool:
    """Whether a result is of this engine session."""
    return result._engine is engine


def run_unless_running(result: QueryResult) -> None:
    """Run a result, but not one that is being run: reading tables may run statements in the session."""
    if not result._is_running:
        result.run()
