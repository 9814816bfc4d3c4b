"""Looking up rows by id or by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.arrow_values import of_numpy
from lance_engine.errors import InvalidArgumentError
from lance_engine.fetch import ordered_ahead
from lance_engine.logical_types import EXTENSION_NAME
from lance_engine.lru_cache import LruCache
from lance_engine.metrics import ScanMetrics, counting, current_metrics
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.fragment_group import GroupUnreadableError
from lance_engine.scan.layout import Names
from lance_engine.scan.lookups import Lookup, lookups
from lance_engine.scan.paths import arrow_field, column_names, nested_columns, top_level_fields
from lance_engine.scan.pool import PARALLEL_ROWS, ordered_map
from lance_engine.scan.positions import addresses_at, row_numbers
from lance_engine.scan.projection import Projection
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.system import SYSTEM_FIELDS
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.schema_tree import Schema
    from lance_engine.table.snapshot import Snapshot

# Maximum number of column selections cached per snapshot.
_CACHED_COLUMNS = 64


class _Columns(NamedTuple):
    names: Names
    schema: pa.Schema
    has_extensions: bool
    """Whether the metadata of fields name extension types."""


_columns: WeakIdentityDict[Snapshot, LruCache[tuple[str, ...], _Columns]] = WeakIdentityDict()


def take(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    row_ids: npt.ArrayLike,
    columns: Sequence[str] | None = None,
    *,
    missing: Literal["error", "skip"] = "error",
    metrics: ScanMetrics | None = None,
) -> pa.Table:
    """The rows with these ids, in this order, including duplicates; metrics are added to `metrics`.

    The path of a struct field returns the struct with this field only, and those of other paths.
    RowNotFoundError lists ids that do not exist or were deleted, unless `missing` is "skip".
    """
    if metrics is not None:
        with metrics.phase("total"), counting(metrics):
            table = take(snapshot, reader_for, row_ids, columns, missing=missing)
        metrics.add(rows_out=table.num_rows)
        return table
    if missing not in ("error", "skip"):
        raise InvalidArgumentError(f"missing must be 'error' or 'skip', not {missing!r}")
    wanted = _columns_of(snapshot, column_names(snapshot.schema, columns))
    find = snapshot.resolve_row_ids if missing == "error" else snapshot.find_row_ids
    return _rows_at(snapshot, reader_for, find(row_numbers(row_ids, "row ids")), wanted)


def take_positions(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    positions: npt.ArrayLike,
    columns: Sequence[str] | None = None,
    *,
    metrics: ScanMetrics | None = None,
) -> pa.Table:
    """The rows at these positions among the live rows, in scan order; otherwise like `take`.

    PositionOutOfRangeError for a position that is not less than the number of rows.
    """
    if metrics is not None:
        with metrics.phase("total"), counting(metrics):
            table = take_positions(snapshot, reader_for, positions, columns)
        metrics.add(rows_out=table.num_rows)
        return table
    wanted = _columns_of(snapshot, column_names(snapshot.schema, columns))
    return _rows_at(snapshot, reader_for, addresses_at(snapshot, row_numbers(positions, "positions")), wanted)


def _rows_at(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    addresses: npt.NDArray[np.uint64],
    wanted: _Columns,
) -> pa.Table:
    if len(addresses) == 0:
        return _finished(wanted.schema.empty_table(), wanted)
    order = None
    if len(addresses) > 1 and (addresses[1:] < addresses[:-1]).any():
        order = np.argsort(addresses, kind="stable")
        addresses = addresses[order]
    readers = lookups(snapshot, reader_for, wanted.names, addresses)
    read = partial(_read, names=wanted.names, metrics=current_metrics())
    batches: Iterable[list[pa.RecordBatch]]
    if not snapshot.is_local:
        batches = (batch for _, batch in ordered_ahead(read, iter(readers)))
    elif len(addresses) < PARALLEL_ROWS:
        batches = map(read, readers)
    else:
        batches = ordered_map(read, iter(readers), len(readers))
    table = pa.Table.from_batches(chain.from_iterable(batches), schema=wanted.schema)
    if len(readers) > 1:
        read_order = np.concatenate([lookup.places for lookup in readers])
        if order is not None:
            order = order[read_order]
        elif (read_order[1:] < read_order[:-1]).any():
            order = read_order
    if order is None:
        return _finished(table, wanted)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return _finished(table.combine_chunks().take(of_numpy(places)), wanted)


def _read(lookup: Lookup, names: Names, metrics: ScanMetrics | None) -> list[pa.RecordBatch]:
    try:
        with counting(metrics):
            return _batches(lookup.reader, lookup.reader.projection(names), lookup.offsets)
    except GroupUnreadableError:
        return [batch for alone in lookup.apart for batch in _read(alone, names, metrics)]


def _batches(
    reader: RowsReader, projection: Projection, rows: npt.NDArray[np.uint32]
) -> list[pa.RecordBatch]:
    """Rows in as few batches as possible."""
    try:
        return [projection.read_rows(rows)]
    except kernels.BatchTooLargeError as error:
        if len(rows) == 1:
            raise reader.row_too_large(error) from None
        return [batch for half in np.array_split(rows, 2) for batch in _batches(reader, projection, half)]


def _columns_of(snapshot: Snapshot, names: tuple[str, ...]) -> _Columns:
    kept = _columns.computed(snapshot, partial(LruCache, _CACHED_COLUMNS))
    return kept.computed(names, partial(_selected, snapshot.schema, names))


def _selected(schema: Schema, names: tuple[str, ...]) -> _Columns:
    top = set(schema.names)
    wanted: Names = names
    if any(name not in top and name not in SYSTEM_FIELDS for name in names):
        wanted = nested_columns(schema, names)
    fields = top_level_fields(schema, wanted)
    arrow = pa.schema(
        [name.to_arrow() if not isinstance(name, str) else arrow_field(schema, name) for name in wanted]
    )
    arrow = arrow.with_metadata(schema.to_arrow().metadata)
    has_extensions = any(EXTENSION_NAME in node.metadata for field in fields for node in field.walk())
    return _Columns(wanted, arrow, has_extensions)


def _finished(table: pa.Table, columns: _Columns) -> pa.Table:
    """The table with the metadata and the extension types of the dataset, as scans return them."""
    if columns.schema.metadata and table.num_columns:
        table = table.replace_schema_metadata(columns.schema.metadata)
    return pa.RecordBatchReader.from_stream(table).read_all() if columns.has_extensions else table
