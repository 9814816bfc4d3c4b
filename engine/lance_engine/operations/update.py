"""Updates values of rows: the rows are removed from their fragments and rewritten to new ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from lance_engine.distinct import distinct
from lance_engine.errors import InvalidArgumentError
from lance_engine.format.fragment import Fragment
from lance_engine.format.operations import Update
from lance_engine.operations.changes import (
    commit_change,
    removed_on_failure,
    write_options,
    write_reported,
)
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.operations.rows import (
    drop_unused,
    joined,
    joined_lineage,
    rows_by_fragment,
    take_out,
    with_lineage,
)
from lance_engine.operations.values import ColumnValues, Compiler, Value, check_whole_columns, column_values
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.scan.partial import Filter, scan
from lance_engine.scan.splits import ScanSplit
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.table.snapshot import Snapshot, U64Array
from lance_engine.write.fragments import data_paths
from lance_engine.write.options import WriteOptions


def update(
    snapshot: Snapshot,
    values: Mapping[str, Value],
    where: Filter = None,
    *,
    compiler: Compiler | None = None,
    progress: ProgressOption = None,
) -> Snapshot:
    """Update the columns named in `values` in the rows that pass `where`; None means all rows.

    A value is SQL text over the old values of the row, or a function from the batch of these rows to an
    array. Stable row ids are kept; otherwise an updated row has a new id.
    """
    if not isinstance(values, Mapping):
        raise InvalidArgumentError(
            f"update needs a dict from columns to new values, not {values!r}",
            remedy="Write for example update({'price': 'price * 2'}, where='id = 1')",
        )
    if not values:
        raise InvalidArgumentError("update needs at least one column")

    def once(snapshot: Snapshot) -> Snapshot:
        return _update(snapshot, values, where, compiler, Reporter(progress))

    return redo_on_conflict(snapshot, once)


def _update(
    snapshot: Snapshot,
    values: Mapping[str, Value],
    where: Filter,
    compiler: Compiler | None,
    reporter: Reporter,
) -> Snapshot:
    reporter.begin("updating rows", snapshot.num_rows if where is None else None)
    with removed_on_failure(snapshot.store) as paths:
        options = write_options(snapshot)
        moved, fragments = write_updated(snapshot, values, where, compiler, options, reporter)
        paths += data_paths(fragments)
        reporter.end()
    return commit_moved(snapshot, values, [moved], fragments)


def write_updated(
    snapshot: Snapshot,
    values: Mapping[str, Value],
    where: Filter,
    compiler: Compiler | None,
    options: WriteOptions,
    reporter: Reporter,
    splits: Sequence[ScanSplit] | None = None,
) -> tuple[U64Array, list[Fragment]]:
    """Write the rows with their new values to new fragments; also returns their old addresses.

    `splits` restricts this to some ranges of rows.
    """
    schema = snapshot.schema
    arrow = schema.to_arrow()
    check_whole_columns(schema, values)
    computed = [
        column_values(name, value, arrow, arrow.field(name), compiler) for name, value in values.items()
    ]
    addresses: list[U64Array] = []
    rows = scan(snapshot, [*schema.names, ROW_ADDRESS], where, splits=splits)

    def changed() -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches():
            # A copy: a view would keep all columns of the batch in memory.
            addresses.append(batch.column(batch.num_columns - 1).to_numpy().copy())
            yield _changed(batch.select(schema.names), computed)

    fragments = write_reported(snapshot.store, schema, changed(), options, reporter)
    return joined(addresses), fragments


def commit_moved(
    snapshot: Snapshot,
    modified: Iterable[str],
    moved: Sequence[U64Array],
    fragments: Sequence[Fragment],
    *,
    deleted: U64Array | None = None,
    inserts_keys: bool = False,
    inserts_rows: bool = False,
) -> Snapshot:
    """Remove rows from their fragments, now that `fragments` contain them with new values.

    `moved` are their addresses in the order in which they were written, ascending within each part; new rows
    come after them. `deleted` are addresses of rows that are only removed. `modified` names the columns that
    may have new values. `inserts_keys` and `inserts_rows` are those of `Update`.
    """
    schema = snapshot.schema
    with removed_on_failure(snapshot.store) as paths:
        paths += data_paths(fragments)
        placed = with_lineage(fragments, joined_lineage(snapshot, moved))
        gone = distinct(joined([*moved, deleted] if deleted is not None else moved))
        removal = take_out(snapshot, rows_by_fragment(snapshot, gone))
        paths += removal.paths()
    ids = tuple(field.id for name in modified for field in schema.field(name).walk())
    operation = Update(
        removal.removed_ids,
        removal.updated,
        tuple(placed),
        ids,
        inserts_keys=inserts_keys,
        inserts_rows=inserts_rows,
    )
    committed = commit_change(snapshot, operation, paths, taken=removal.taken)
    drop_unused(committed, removal)
    return committed


def _changed(batch: pa.RecordBatch, computed: list[ColumnValues]) -> pa.RecordBatch:
    """The batch with the new values, which are all computed from the old ones."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns |= {column.name: column.compute(batch) for column in computed}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
