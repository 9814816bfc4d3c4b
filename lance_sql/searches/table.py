"""The result of a search as a table of an engine: the search runs when the engine scans it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads
from lance_engine.base import with_types
from lance_engine.errors import LanceError

from lance_sql.engines.exit_guard import guarded, visit
from lance_sql.engines.partitions import as_expression
from lance_sql.engines.statement_run import Runs, StatementRun

if TYPE_CHECKING:
    import pyarrow.compute as pc

#: A function that returns the rows with the given columns.
Answer = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


class SearchTable(pads.Dataset):  # type: ignore[misc]
    """The result of `answer` as a pyarrow dataset; each scan calls it again.

    `description` describes the search in lines.
    """

    def __init__(self, schema: pa.Schema, answer: Answer, description: Callable[[], list[str]]) -> None:
        # The base class is only an interface here, as in `PlainDataset`.
        self._schema = schema
        self.answer = answer
        self.description = description
        self._runs = Runs()

    def within(self, declare: Callable[[pa.Field], pa.Field] | None, runs: Runs) -> SearchTable:
        """A copy for an engine that reads other types, whose scans belong to `runs`."""
        schema = self._schema
        if declare is not None:
            schema = pa.schema(map(declare, schema))
        table = SearchTable(schema, self.answer, self.description)
        table._runs = runs
        return table

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> SearchScanner:
        """A scan of the result. Other scan `options` of pyarrow have no effect."""
        return self.scanner_of(self._runs.current, columns, filter)

    def scanner_of(
        self, run: StatementRun | None, columns: Sequence[str] | None, filter: pc.Expression | None
    ) -> SearchScanner:
        """A scan that belongs to `run`."""
        return SearchScanner(self, columns, as_expression(filter), run)

    def get_fragments(self, filter: pc.Expression | None = None) -> list[SearchFragment]:
        """The result is a single fragment."""
        return [SearchFragment(self, self._runs.current)]


class SearchFragment:
    """A result as a pyarrow dataset fragment.

    DataFusion requests it on the thread that runs the statement, but scans it on another one.
    """

    def __init__(self, table: SearchTable, run: StatementRun | None) -> None:
        self._table, self._run = table, run

    @property
    def physical_schema(self) -> pa.Schema:
        return self._table.schema

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **options: Any,
    ) -> SearchScanner:
        with visit():
            return self._table.scanner_of(self._run, columns, filter)


class SearchScanner:
    """A search as a pyarrow scanner; it runs when its rows are read."""

    def __init__(
        self,
        table: SearchTable,
        columns: Sequence[str] | None,
        filter: pc.Expression | None,
        run: StatementRun | None,
    ) -> None:
        self._table = table
        self._columns = list(table.schema.names if columns is None else columns)
        self._filter = filter
        self._run = run
        self.dataset_schema: pa.Schema = table.schema
        self.projected_schema = pa.schema([table.schema.field(name) for name in self._columns])

    def _batches(self) -> Iterator[pa.RecordBatch]:
        # The filter's columns are unknown, so all are read: results are small.
        names = self._columns if self._filter is None else list(self._table.schema.names)
        schema = pa.schema([self._table.schema.field(name) for name in names])
        try:
            for batch in self._table.answer(names):
                chosen = batch.select(names)
                cast = with_types(chosen, schema) if names else chosen
                if self._filter is None:
                    yield cast
                else:
                    kept = pa.Table.from_batches([cast]).filter(self._filter).select(self._columns)
                    yield from kept.to_batches()
        except LanceError as error:  # engines only pass on its text
            if self._run is not None:
                self._run.failed(error)
            raise

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The batches; safe on threads that Python did not start."""
        return guarded(self._batches)

    def to_table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches(), self.projected_schema)

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches())

    def count_rows(self) -> int:
        return sum(batch.num_rows for batch in self._batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)
