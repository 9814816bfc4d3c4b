"""Updates whole columns, without moving rows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lance_engine.errors import InvalidArgumentError
from lance_engine.format.fragment_list import fragment_ids
from lance_engine.format.operations import DataReplacement
from lance_engine.operations.changes import commit_change
from lance_engine.operations.column_files import write_columns
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.operations.values import (
    Compiler,
    Value,
    check_whole_columns,
    column_values,
    columns_read,
)
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.schema_tree import Schema
from lance_engine.table.snapshot import DATA, Snapshot


def replace_columns(
    snapshot: Snapshot,
    values: Mapping[str, Value],
    *,
    compiler: Compiler | None = None,
    progress: ProgressOption = None,
) -> Snapshot:
    """Update the columns named in `values` in all rows of this version.

    A value is SQL text over the columns of the row as it was, or a function from a batch of live rows to an
    array. Only these columns are written, to their own data files. Row addresses and stable row ids stay;
    rows that others append meanwhile keep their values.
    """
    if not values:
        raise InvalidArgumentError("replace_columns needs at least one column")

    def once(snapshot: Snapshot) -> Snapshot:
        return _replace(snapshot, values, compiler, Reporter(progress))

    return redo_on_conflict(snapshot, once)


def _replace(
    snapshot: Snapshot, values: Mapping[str, Value], compiler: Compiler | None, reporter: Reporter
) -> Snapshot:
    check_whole_columns(snapshot.schema, values)
    arrow = snapshot.schema.to_arrow()
    replaced = Schema(tuple(field for field in snapshot.schema.fields if field.name in values))
    computed = [
        column_values(name, values[name], arrow, arrow.field(name), compiler) for name in replaced.names
    ]

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [column.compute(batch) for column in computed], names=replaced.names
        )

    files = write_columns(snapshot, replaced, columns_read(computed, snapshot.schema), compute, reporter)
    fragments = fragment_ids(snapshot.fragments).tolist()
    operation = DataReplacement(tuple(zip(fragments, files, strict=True)))
    return commit_change(snapshot, operation, [f"{DATA}/{file.path}" for file in files])
