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
from lance_engine.errors import InvalidArgumentError, InvalidFilterError, UnsupportedTypeError
from lance_engine.expr.value_types import is_text
from lance_engine.fetch import MOST_AHEAD, ReadAhead, ordered_ahead
from lance_engine.legible import legible_line, without_secrets
from lance_engine.metrics import ScanMetrics, counting
from lance_engine.owned import OwnedValues
from lance_engine.scan.entry_columns import EntryColumn
from lance_engine.scan.execute import PieceReader
from lance_engine.scan.fetching import (
    FragmentBuffers,
    Planned,
    fetched_ahead,
    first_rows,
    group_fetched_ahead,
)
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.fragment_group import FragmentGroup, FragmentGrouping, GroupUnreadableError, together
from lance_engine.scan.paths import arrow_field, column_names, field_path, paths_below
from lance_engine.scan.plan import FilterPlan, Part, Piece, ScanPlan, pieces
from lance_engine.scan.pool import PARALLEL_ROWS, num_threads, ordered_map
from lance_engine.scan.projection import Projection
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.selection import Selection
from lance_engine.scan.splits import ScanSplit
from lance_engine.scan.stream import ScanStream, native_stream
from lance_engine.scan.system import ROW_ADDRESS, SYSTEM_FIELDS
from lance_engine.scan.width import estimated_row_bytes
from lance_engine.schema_tree import Field
from lance_engine.table.snapshot import Snapshot

# Imported with the first filter, because a count of all rows does not need it.
if TYPE_CHECKING:
    import pyarrow.compute as pc

    from lance_engine.expr.tree import Node
    from lance_engine.plan_picture import PlanPicture
    from lance_engine.scan.explain import ScanText
    from lance_engine.scan.layout import Names
    from lance_engine.schema_tree import Schema

# Rows of a batch unless the caller says otherwise, which suit DuckDB; fewer where rows are wide.
DEFAULT_BATCH_ROWS = 122_880
TARGET_BATCH_BYTES = 32 << 20
# Number of rows that kernels test at once if they only keep a bit per row.
_TESTED_ROWS = 1 << 19
# Number of rows tested at once if columns are decoded for it: enough to outweigh the cost of a step.
_EVALUATED_ROWS = 1 << 16
# Threads for filtered scans of files that are not local.
_WAITING_THREADS = 4
# Number of parsed filters and column selections that are cached per schema, which versions usually share.
_KEPT_FILTERS = 64
_KEPT_SELECTIONS = 64
_parsed: OwnedValues[Schema, dict[str, Node]] = OwnedValues()
_selected: OwnedValues[Schema, dict[tuple[Names, frozenset[str]], tuple[pa.Schema, int]]] = OwnedValues()


class Scanner:
    """Rows of a snapshot, ordered by address. Every call of a result method scans again."""

    def __init__(
        self,
        snapshot: Snapshot,
        reader_for: Callable[[int], FragmentReader],
        *,
        columns: Sequence[str | Field | EntryColumn] | None = None,
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
        if (batch_size is not None and batch_size < 1) or (batch_bytes is not None and batch_bytes < 1):
            raise InvalidArgumentError("batch_size and batch_bytes must be at least 1")
        for name, number in (("limit", limit), ("offset", offset)):
            if number is not None and not isinstance(number, (int, np.integer)):
                raise InvalidArgumentError(f"{name} must be a whole number, not {number!r}")
        if (limit is not None and limit < 0) or (offset is not None and offset < 0):
            raise InvalidArgumentError("limit and offset must not be negative")
        begin = time.perf_counter()
        self._snapshot = snapshot
        self._reader_for = reader_for
        names = column_names(snapshot.schema, columns)
        self._names: Names = names
        self._coded = frozenset(dictionaries)
        self.schema, self.row_bytes = _selection(snapshot, names, self._coded)
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
        self._batch_bytes = batch_bytes
        most_bytes = min(TARGET_BATCH_BYTES, batch_bytes or TARGET_BATCH_BYTES)
        most_rows = max(1 if batch_bytes else 1024, min(DEFAULT_BATCH_ROWS, most_bytes // self.row_bytes))
        self.batch_rows = (
            min(batch_size, most_rows) if batch_size and batch_bytes else batch_size or most_rows
        )
        used = {*names, *(_columns_of(self.filter) if self.filter is not None else ())}
        self._grouping = FragmentGrouping(snapshot, used, self.batch_rows, few=limit is not None)
        self._plan = ScanPlan(
            snapshot,
            reader_for,
            planned,
            splits,
            read_together=self._grouping.takes,
        )
        self._steps = None if planned is None else planned.steps
        self.reader = PieceReader(self.schema, names, self._coded, self._steps, self.batch_rows, batch_bytes)
        # Threads read many rows at a time of the data fetched for them, and return them in batches.
        few = self._is_local or limit is not None
        self._decoded_rows = self.batch_rows if few else max(self.batch_rows, most_rows)
        self._tested_rows = self.batch_rows if limit is not None else max(self.batch_rows, self._many_rows())
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
        found: dict[str, None] = {}
        for name in self._names:
            if isinstance(name, EntryColumn):
                found[name.source] = None
            else:
                found.update(dict.fromkeys([name] if isinstance(name, str) else paths_below(name)))
        return list(found)

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
        metrics.add_time("total", time.perf_counter() - begin)
        rows = max(0, rows - self.offset)
        rows = rows if self.limit is None else min(rows, self.limit)
        metrics.add(rows_out=rows)
        return rows

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
        metrics.add_time("plan", self._plan_seconds)
        if self.filter is not None:
            metrics.filtered_by(self.filter.__str__)
        return metrics

    def pieces(self, metrics: ScanMetrics, counted: bool = False) -> Iterator[Piece]:
        """What to read, in row order: in pieces of a batch, but as large as can be where rows only need
        to be counted or decoded.
        """
        # Rows that need no test are counted without reading them, however few.
        first = MOST_AHEAD if self.limit is None and self._expected is None else 1
        plan = self._plan.fragments(1 if counted else self.batch_rows // 4, metrics, first)
        limit = None if self.limit is None else self.offset + self.limit
        coming = self._timed(together(plan, self._grouping, self._reader_for, limit), metrics)
        if not self._is_local:
            if limit is not None:
                coming = first_rows(coming, limit)
            elif self._expected is not None:
                coming = first_rows(coming, self._expected, is_certain=False)
            yield from self._fetched_pieces(coming, metrics, counted)
            return
        for reader, parts in coming:
            try:
                yield from self._cut(reader, parts, counted)
            except GroupUnreadableError:
                self._grouping.give_up()
                assert isinstance(reader, FragmentGroup)
                for alone, rows in reader.apart(Selection.of_range(0, reader.rows)):
                    yield from self._cut(alone, [Part(rows.ranges, parts[0].tested)], counted)

    @staticmethod
    def _timed(coming: Iterator[Planned], metrics: ScanMetrics) -> Iterator[Planned]:
        while True:
            with metrics.phase("plan"), counting(metrics):
                found = next(coming, None)
                if found is not None and isinstance(found[0], FragmentGroup):
                    found[0].fetch_deletions()
            if found is None:
                return
            yield found

    def _fetched_pieces(
        self, coming: Iterator[Planned], metrics: ScanMetrics, counted: bool
    ) -> Iterator[Piece]:
        """Like `pieces`, but files are opened, and planned data is fetched, in advance."""
        read_ahead = self._fetching = ReadAhead(self._fetch_ahead, metrics)

        def prepare(task: tuple[int, Planned]) -> FragmentBuffers | None:
            turn, (reader, parts) = task
            with counting(metrics):
                if isinstance(reader, FragmentGroup):
                    return group_fetched_ahead(read_ahead, turn, reader, self._group_names(parts, counted))
                reader.deleted()
                wanted = list(self._wanted(reader, parts, counted))
                return fetched_ahead(read_ahead, turn, wanted, few=few)

        few = self.limit is not None
        first = 1 if few or self._expected is not None else MOST_AHEAD
        for (_, (reader, parts)), buffers in ordered_ahead(prepare, enumerate(coming), first):
            for piece in self._cut(reader, parts, counted):
                if buffers is not None:
                    rows = piece.selection
                    piece = piece._replace(ticket=buffers.begin(rows.begin, rows.end, rows.count))
                yield piece
            if buffers is not None:
                buffers.end()

    def _group_names(self, parts: Sequence[Part], counted: bool) -> Names:
        """The columns that are read for all rows of a group."""
        if parts[0].tested:
            assert self._steps is not None
            return self._steps.names
        return () if counted else self._names

    def _wanted(
        self, reader: RowsReader, parts: Sequence[Part], counted: bool
    ) -> Iterator[tuple[Projection, Part]]:
        """The columns that are read for all rows of parts."""
        for part in parts:
            if part.tested:
                assert self._steps is not None
                yield reader.projection(self._steps.names), part
            elif not counted:
                yield reader.projection(self._names, self._coded), part

    def stop_fetching(self) -> None:
        """Stop reading ahead: no more rows of the run are needed."""
        if self._fetching is not None:
            self._fetching.close()

    def _cut(self, reader: RowsReader, parts: Sequence[Part], counted: bool) -> Iterator[Piece]:
        """Parts of the rows of a reader in pieces; fails before the first one where a run cannot be read."""
        names = self._names
        is_fetched = isinstance(reader, FragmentGroup) and not reader.is_local
        for part in parts:
            if part.tested:
                yield from pieces(reader, part, self._tested_rows, None)
            elif counted:
                yield from pieces(reader, part, 1 << 32, None)
            elif is_fetched:  # the decoding thread waits for the files
                yield from pieces(reader, part, self.batch_rows, None)
            else:
                projection = reader.projection(names, self._coded)
                rows = 1 << 32 if self._only_decodes(projection, reader, part) else self._decoded_rows
                for piece in pieces(reader, part, rows, projection.borders):
                    native = self._only_decodes(projection, reader, piece)
                    yield piece._replace(projection=projection) if native else piece

    def _only_decodes(self, projection: Projection, reader: RowsReader, rows: Part | Piece) -> bool:
        """Whether the decoders return rows in the types of the scan."""
        ranges = rows.ranges if isinstance(rows, Part) else rows.selection.ranges
        return (
            projection.native is not None
            and self._batch_bytes is None
            and len(ranges) == 1
            and not reader.any_deleted(int(ranges[0, 0]), int(ranges[0, 1]))
        )


def repeated(scanner: Scanner) -> Scanner:
    """The same scan with metrics of its own, much faster than creating one."""
    found = copy.copy(scanner)
    found._limit_memory()
    found._plan_seconds = 0.0
    found._metrics = found._fetching = found._expected = None
    found._decodes_here = False
    return found


def projected_schema(
    snapshot: Snapshot, names: Sequence[str | Field | EntryColumn], coded: Collection[str] = ()
) -> pa.Schema:
    """The Arrow schema of some columns, including system columns; ColumnNotFoundError for unknown ones.

    Columns in `coded`, which must be strings, get a dictionary type.
    """
    fields = [
        arrow_field(snapshot.schema, name) if isinstance(name, str) else name.to_arrow() for name in names
    ]
    for index, field in enumerate(fields):
        if field.name in coded:
            path = field_path(snapshot.schema, field.name)
            if len(path) > 1 or not is_text(field.type) or path[-1].is_json:
                raise UnsupportedTypeError(
                    "Only strings at the top level can be read as dictionaries", column=field.name
                )
            fields[index] = field.with_type(pa.dictionary(pa.int32(), field.type))
    return pa.schema(fields)


def _selection(snapshot: Snapshot, names: Names, coded: frozenset[str]) -> tuple[pa.Schema, int]:
    """The schema of some columns, and the approximate size of a row in bytes."""
    for name in names:
        if not isinstance(name, (str, Field, EntryColumn)):
            raise InvalidArgumentError(f"columns must be names of columns, but one is {name!r}")
    if any(isinstance(name, EntryColumn) for name in names):
        # Versions share their schema, but not what stands for strings.
        schema = projected_schema(snapshot, names, coded)
        return schema, max(1, estimated_row_bytes(schema))
    kept = _selected.setdefault(snapshot.schema, {})
    found = kept.get((names, coded))
    if found is None:
        schema = projected_schema(snapshot, names, coded)
        if len(kept) >= _KEPT_SELECTIONS:
            kept.clear()
        found = kept[names, coded] = schema, max(1, estimated_row_bytes(schema))
    return found


def _columns_of(filter: Node) -> Collection[str]:
    from lance_engine.expr.tree import columns_of

    return columns_of(filter)


def parse_filter(filter: str | pc.Expression | Node | None, snapshot: Snapshot) -> Node | None:
    """The filter tree for any kind of filter over the columns of a snapshot and the system columns."""
    if filter is None:
        return None
    from lance_engine.expr.from_arrow import from_arrow
    from lance_engine.expr.from_sql import parse_sql
    from lance_engine.expr.operations import with_official_casts
    from lance_engine.expr.total_order import in_total_order
    from lance_engine.expr.tree import Node

    if isinstance(filter, Node):
        return filter
    kept = _parsed.setdefault(snapshot.schema, {})
    if isinstance(filter, str) and filter in kept:
        return kept[filter]
    schema = snapshot.schema.to_arrow()
    for field in SYSTEM_FIELDS.values():
        schema = schema.append(field)
    if not isinstance(filter, str):
        import pyarrow.compute as pc

        if not isinstance(filter, pc.Expression):
            raise InvalidFilterError(
                f"A filter is SQL text or a pyarrow expression, not {filter!r}",
                remedy='Write a condition as in WHERE, for example filter="price > 10"',
            )
        return from_arrow(filter, schema)
    found = in_total_order(with_official_casts(parse_sql(filter, schema)))
    if len(kept) >= _KEPT_FILTERS:
        kept.clear()
    kept[filter] = found
    return found
