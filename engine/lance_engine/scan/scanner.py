"""A scan: which columns of which rows, and its results as batches, a table, a reader or a count."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.arrow_values import to_numpy
from lance_engine.cache import read_ahead_bytes
from lance_engine.errors import InvalidArgumentError, whole_number
from lance_engine.fetch import ReadAhead
from lance_engine.legible import legible_line, without_secrets
from lance_engine.metrics import ScanMetrics
from lance_engine.public import Public
from lance_engine.scan.code_columns import CodeColumn
from lance_engine.scan.execute import PieceReader
from lance_engine.scan.filters import parse_filter
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.fragment_group import FragmentGrouping
from lance_engine.scan.paths import column_names, paths_below
from lance_engine.scan.pieces import Columns, PieceRows, ScanPieces
from lance_engine.scan.plan import FilterPlan, Piece, ScanPlan
from lance_engine.scan.pool import PARALLEL_ROWS, num_threads, ordered_map
from lance_engine.scan.selected_columns import projected_schema, selected_columns
from lance_engine.scan.splits import ScanSplit, splits_from
from lance_engine.scan.stream import ScanStream, native_stream
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.scan.width import estimated_row_bytes
from lance_engine.schema_tree import Field
from lance_engine.table.snapshot import Snapshot

# Imported with the first filter, because a count of all rows does not need it.
if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.compute as pc

    from lance_engine.expr.tree import Node
    from lance_engine.plan_picture import PlanPicture
    from lance_engine.scan.explain import ScanText
    from lance_engine.scan.layout import Names

# Rows of a batch unless the caller says otherwise, which suit DuckDB; fewer where rows are wide.
DEFAULT_BATCH_ROWS = 122_880
TARGET_BATCH_BYTES = 32 << 20
# Number of rows that kernels test at once if they only keep a bit per row.
_TESTED_ROWS = 1 << 19
# Number of rows tested at once if columns are decoded for it: enough to outweigh the cost of a step.
_EVALUATED_ROWS = 1 << 16
# Threads for filtered scans of files that are not local.
_WAITING_THREADS = 4


class Scanner(Public):
    """Rows of a snapshot, ordered by address. Every call of a result method scans again.

    `schema` is that of the rows, `filter` the condition as a tree, or None; `limit`, `offset` and
    `batch_rows`, the most rows of a batch, are numbers of rows.
    """

    _ours = frozenset(
        {
            "addresses", "decode_here", "look_ahead", "pieces", "read_ahead", "read_here", "reader",
            "row_bytes", "skipped", "start", "stop_fetching", "threads", "with_metadata",
        }
    )  # fmt: skip

    def __init__(
        self,
        snapshot: Snapshot,
        reader_for: Callable[[int], FragmentReader],
        *,
        columns: Sequence[str | Field | CodeColumn] | None = None,
        filter: str | pc.Expression | Node | FilterPlan | None = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        batch_bytes: int | None = None,
        splits: Sequence[ScanSplit] | None = None,
        zone_maps: bool = True,
        indices: bool = True,
        dictionaries: Collection[str] = (),
        read_ahead: int | None = None,
    ) -> None:
        for name, number, least in (
            ("batch_size", batch_size, 1),
            ("batch_bytes", batch_bytes, 1),
            ("limit", limit, 0),
            ("offset", offset, 0),
        ):
            if number is not None:
                whole_number(name, number, least)
        begin = time.perf_counter()
        self._snapshot = snapshot
        self._reader_for = reader_for
        names = column_names(snapshot.schema, columns)
        self._names: Names = names
        coded = frozenset(dictionaries)
        self.schema, self.row_bytes = selected_columns(snapshot, names, coded)
        if isinstance(filter, FilterPlan):
            planned: FilterPlan | None = filter
        else:
            tree = parse_filter(filter, snapshot)
            planned = None
            if tree is not None:
                planned = FilterPlan(tree, snapshot, zone_maps=zone_maps, indices=indices)
        self.filter = None if planned is None else planned.filter
        self.limit = limit
        self.offset = offset or 0
        self._is_local = snapshot.is_local
        self._asked_ahead = read_ahead
        self._limit_memory()
        self._splits = splits
        most_bytes = min(TARGET_BATCH_BYTES, batch_bytes or TARGET_BATCH_BYTES)
        most_rows = max(1 if batch_bytes else 1024, min(DEFAULT_BATCH_ROWS, most_bytes // self.row_bytes))
        self.batch_rows = (
            min(batch_size, most_rows) if batch_size and batch_bytes else batch_size or most_rows
        )
        #: rows of the splits before the first one that is wanted
        self.skipped = self.offset
        if (self.offset or limit is not None) and planned is None and splits is None:
            splits, self.skipped = splits_from(snapshot, self.offset, limit)
        used = {*names, *(_columns_of(self.filter) if self.filter is not None else ())}
        grouping = FragmentGrouping(snapshot, used, self.batch_rows, few=limit is not None)
        self._plan = ScanPlan(
            snapshot,
            reader_for,
            planned,
            splits,
            read_together=grouping.takes,
        )
        self._steps = None if planned is None else planned.steps
        self.reader = PieceReader(self.schema, names, coded, self._steps, self.batch_rows, batch_bytes)
        # Threads read many rows at a time of the data fetched for them, and return them in batches.
        few = self._is_local or limit is not None
        decoded_rows = self.batch_rows if few else max(self.batch_rows, most_rows)
        tested_rows = self.batch_rows if limit is not None else max(self.batch_rows, self._many_rows())
        self._pieces = ScanPieces(
            self._plan,
            grouping,
            reader_for,
            Columns(names, coded, () if self._steps is None else self._steps.names),
            PieceRows(self.batch_rows, decoded_rows, tested_rows),
            limits_bytes=batch_bytes is not None,
        )
        self._plan_seconds = time.perf_counter() - begin
        self._metrics: ScanMetrics | None = None
        self._fetching: ReadAhead | None = None
        self._expected: int | None = None
        self._decodes_here = False

    def _limit_memory(self) -> None:
        ahead = self._asked_ahead
        if ahead is None:
            ahead = read_ahead_bytes() * (1 if self._is_local else 2)
        #: maximum size of decoded batches waiting for their consumer
        self.read_ahead = ahead if self._is_local else ahead // 4
        # Maximum size of file data in flight or waiting to be decoded: its memory blocks are larger.
        self._fetch_ahead = (ahead - self.read_ahead) * 3 // 4

    def _many_rows(self) -> int:
        """Number of rows to test at once: more if that takes no memory."""
        if self._steps is None:
            return 0
        if self._steps.are_native:
            return _TESTED_ROWS
        width = estimated_row_bytes(projected_schema(self._snapshot, self._steps.names))
        return min(_EVALUATED_ROWS, TARGET_BATCH_BYTES // max(1, width))

    @property
    def columns(self) -> list[str]:
        """The columns to read, and struct fields that are read in part."""
        columns: dict[str, None] = {}
        for name in self._names:
            if isinstance(name, CodeColumn):
                columns[name.source] = None
            else:
                columns.update(dict.fromkeys([name] if isinstance(name, str) else paths_below(name)))
        return list(columns)

    @property
    def metrics(self) -> ScanMetrics | None:
        """Metrics of the last run of the scan; None before the first. Complete after all rows were read."""
        if self._metrics is not None:
            self._metrics.count_pages()
        return self._metrics

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, none of them empty."""
        return ScanStream(self).batches()

    def read_here(self) -> Iterator[pa.RecordBatch]:
        """Like `to_batches`, but on the calling thread: for short scans.

        Only for scans without `limit` and `offset`.
        """
        self._require_no_limit()
        metrics = self.start()
        for piece in self.pieces(metrics):
            for part in piece.cut(self.batch_rows) if piece.projection else [piece]:
                yield from self.reader.read(part, metrics)

    def reduce(self, work: Callable[[pa.RecordBatch], None]) -> None:
        """Call `work` with every batch, on the decoding threads; at most a few batches are in memory.

        Only for scans without `limit` and `offset`.
        """
        self._require_no_limit()
        metrics = self.start()

        def read(piece: Piece) -> None:
            for batch in self.reader.read(piece, metrics):
                work(batch)
                metrics.add(rows_out=batch.num_rows)

        parts = (
            part
            for piece in self.pieces(metrics)
            for part in (piece.cut(self.batch_rows) if piece.projection else [piece])
        )
        for _ in ordered_map(read, parts, 2 * num_threads()):
            pass

    def expect(self, rows: int) -> None:
        """A hint that the caller will probably read no more than `rows` rows.

        For remote files, little is then read at first, and increasingly more later.
        """
        self._expected = rows

    def decode_here(self) -> None:
        """Decode local files on the thread that takes the batches: the other processors have work to do."""
        self._decodes_here = True

    @property
    def threads(self) -> int:
        """Number of reading threads; only the consumer's if few rows are looked up."""
        if not self._is_local and self._steps is not None:
            # Some threads wait for the other columns of rows that passed.
            return max(num_threads(), _WAITING_THREADS) if self.limit is None else 2
        here = self._is_local and (self._decodes_here or self._plan.leaves_at_most(PARALLEL_ROWS))
        return 0 if here else num_threads()

    def _require_no_limit(self) -> None:
        if self.limit is not None or self.offset:
            raise InvalidArgumentError("limit and offset are only supported for streams")

    def to_table(self) -> pa.Table:
        """The rows as one table."""
        return ScanStream(self).table()

    def with_metadata(self, table: pa.Table) -> pa.Table:
        """A table with the metadata of the dataset's schema, such as the pandas index."""
        metadata = self._snapshot.schema.to_arrow().metadata
        # A table without columns would lose its row count.
        return table.replace_schema_metadata(metadata) if metadata and table.num_columns else table

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame; pandas must be installed."""
        return self.to_table().to_pandas()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream, which raises pyarrow errors with the text of ours."""
        return ScanStream(self).reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if requested_schema is not None:
            return self.to_reader().__arrow_c_stream__(requested_schema)
        return native_stream(self)

    def count(self) -> int:
        """The number of rows, from metadata if possible: only rows that are tested are read."""
        metrics = self.start()
        begin = time.perf_counter()
        if self.filter is None and self._splits is None:
            rows = self._snapshot.num_rows
        else:

            def count(piece: Piece) -> int:
                return self.reader.count(piece, metrics)

            rows = sum(ordered_map(count, self.pieces(metrics, counted=True), 2 * num_threads()))
        rows = max(0, rows - self.offset)
        rows = rows if self.limit is None else min(rows, self.limit)
        metrics.add(rows_out=rows)
        metrics.end(time.perf_counter() - begin)
        return rows

    # pyarrow's names, for libraries that scan its datasets

    @property
    def dataset_schema(self) -> pa.Schema:
        """The schema of the dataset."""
        return self._snapshot.schema.to_arrow()

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self.schema

    def count_rows(self) -> int:
        """The number of rows; see `count`."""
        return self.count()

    def addresses(self) -> Iterator[npt.NDArray[np.uint64]]:
        """The addresses of the rows, ascending, in parts; only columns of the filter are read.

        Only for scans without `limit` and `offset`.
        """
        self._require_no_limit()
        metrics = self.start()

        def find(piece: Piece) -> list[npt.NDArray[np.uint64]]:
            return [
                to_numpy(reader.system_values(ROW_ADDRESS, selection.offsets))
                for reader, selection in self.reader.passing(piece, metrics)
            ]

        for parts in ordered_map(find, self.pieces(metrics, counted=True), 2 * num_threads()):
            metrics.add(rows_out=sum(map(len, parts)))
            yield from parts

    def __repr__(self) -> str:
        filtered = "" if self.filter is None else f", filter: {self.filter}"
        limited = "" if self.limit is None else f", limit {self.limit:,}"
        offset = f", offset {self.offset:,}" if self.offset else ""
        return legible_line(
            f"<Scanner of {without_secrets(self._snapshot.uri)} version {self._snapshot.version}: "
            f"columns {', '.join(self.schema.names) or '(none)'}{filtered}{limited}{offset}>"
        )

    @overload
    def explain(self, analyze: bool = False, *, html: Literal[False] = False) -> ScanText: ...

    @overload
    def explain(self, analyze: bool = False, *, html: Literal[True]) -> PlanPicture: ...

    def explain(self, analyze: bool = False, *, html: bool = False) -> ScanText | PlanPicture:
        """A description of what the scan reads; with `analyze` it runs, and metrics are included.

        With `html` it is a picture for notebooks: HTML that can also be written to a file.
        """
        if analyze:
            for _ in self.to_batches():
                pass
            metrics = self._metrics
            assert metrics is not None
            metrics.count_pages()
        else:
            metrics = self.look_ahead()
            self._metrics = None
        from lance_engine.scan.explain import explain

        text = explain(self, self._snapshot, self._steps, metrics, analyze=analyze)
        return text.picture() if html else text

    def look_ahead(self) -> ScanMetrics:
        """Compute which rows remain after indices and zone maps, without reading any row."""
        metrics = self.start()
        for _ in self._plan.fragments(self.batch_rows // 4, metrics):
            pass
        return metrics

    def start(self) -> ScanMetrics:
        """Start a run; its metrics are added to the result."""
        metrics = self._metrics = ScanMetrics()
        metrics.reported_for(self._snapshot.uri, self._snapshot.version)
        metrics.add_time("plan", self._plan_seconds)
        if self.filter is not None:
            metrics.filtered_by(self.filter.__str__)
        return metrics

    def pieces(self, metrics: ScanMetrics, counted: bool = False) -> Iterator[Piece]:
        """What to read, in row order; in large pieces where rows are only `counted`."""
        if not self._is_local:
            self._fetching = ReadAhead(self._fetch_ahead, metrics)
        return self._pieces.of_run(
            metrics,
            counted=counted,
            limit=None if self.limit is None else self.skipped + self.limit,
            expected=self._expected,
            fetching=self._fetching,
        )

    def stop_fetching(self) -> None:
        """Stop reading ahead: no more rows of the run are needed."""
        if self._fetching is not None:
            self._fetching.close()


def repeated(scanner: Scanner) -> Scanner:
    """The same scan with metrics of its own, much faster than creating one."""
    repeated = copy.copy(scanner)
    repeated._limit_memory()
    repeated._plan_seconds = 0.0
    repeated._metrics = repeated._fetching = repeated._expected = None
    repeated._decodes_here = False
    return repeated


def _columns_of(filter: Node) -> Collection[str]:
    from lance_engine.expr.tree import columns_of

    return columns_of(filter)
