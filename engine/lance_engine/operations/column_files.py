"""New columns of existing fragments: one more data file per fragment, with a value for every physical row."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.fragment import LEGACY, DataFile, Fragment
from lance_engine.operations.changes import removed_on_failure, write_options, write_reported
from lance_engine.progress import Reporter
from lance_engine.scan.partial import scan
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.schema_tree import Schema
from lance_engine.table.counters import check_counter
from lance_engine.table.snapshot import DATA, Snapshot
from lance_engine.write.fragments import data_paths

_NO_LIMIT: Final = 1 << 62


@dataclasses.dataclass(frozen=True)
class Extended:
    """All fragments with their new data files, and the paths of these files, which are not committed yet."""

    fragments: tuple[Fragment, ...]
    paths: tuple[str, ...]


def numbered_fields(snapshot: Snapshot, fields: pa.Schema) -> Schema:
    """New fields with the first ids that neither the schema nor a data file uses.

    UnsupportedFeatureError for version 0.1: pylance does not read fields that its files do not have.
    """
    if snapshot.manifest.storage_version == LEGACY:
        raise UnsupportedFeatureError(
            "Datasets of version 0.1 cannot get new columns, and columns cannot get other types",
            path=snapshot.uri,
            column=fields.names[0] if fields.names else None,
            remedy="Write the rows to a new dataset, or overwrite this one",
        )
    highest = max((field.id for field in snapshot.schema.walk()), default=-1)
    for fragment in snapshot.fragments:
        for file in fragment.files:
            highest = max(highest, *file.fields, -1)
    added = Schema.from_arrow(fields, highest + 1)
    check_counter("field ids", max((field.id for field in added.walk()), default=0), path=snapshot.uri)
    return added


def extend_fragments(
    snapshot: Snapshot,
    added: Schema,
    columns: Sequence[str],
    compute: Callable[[pa.RecordBatch], pa.RecordBatch],
    reporter: Reporter,
) -> Extended:
    """`write_columns`, and the fragments with these files added."""
    files = write_columns(snapshot, added, columns, compute, reporter)
    fragments = [
        dataclasses.replace(fragment, files=(*fragment.files, file))
        for fragment, file in zip(snapshot.fragments, files, strict=True)
    ]
    return Extended(tuple(fragments), tuple(f"{DATA}/{file.path}" for file in files))


def write_columns(
    snapshot: Snapshot,
    added: Schema,
    columns: Sequence[str],
    compute: Callable[[pa.RecordBatch], pa.RecordBatch],
    reporter: Reporter,
    *,
    fragments: Sequence[Fragment] | None = None,
    file_tag: str = "",
) -> list[DataFile]:
    """Write the columns `added`, which `compute` creates from batches of the live rows with `columns`.

    There is one data file per fragment, in the same order: of `fragments`, or of all. Deleted rows keep their
    positions; they get the value of a neighbour. If anything fails, all files are removed. `columns` may end
    with the address of the row; `file_tag` becomes a part of the names of the files.
    """
    files: list[DataFile] = []
    reporter.begin("writing columns", snapshot.physical_rows)
    with removed_on_failure(snapshot.store) as paths:
        for fragment in snapshot.fragments if fragments is None else fragments:
            rows = _physical_rows(_live_rows(snapshot, fragment, columns, compute), fragment, added)
            options = dataclasses.replace(
                write_options(snapshot, max(1, fragment.physical_rows)),
                max_bytes_per_file=_NO_LIMIT,
                file_tag=file_tag,
            )
            written = write_reported(snapshot.store, added, rows, options, reporter)
            paths += data_paths(written)
            if [part.physical_rows for part in written] != [fragment.physical_rows]:
                raise CorruptFileError(
                    "A fragment has too many rows", path=snapshot.uri, fragment=fragment.id
                )
            files += written[0].files
        reporter.end()
    return files


_Placed = tuple[npt.NDArray[np.int64], pa.RecordBatch]


def _live_rows(
    snapshot: Snapshot,
    fragment: Fragment,
    columns: Sequence[str],
    compute: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> Iterator[_Placed]:
    """Batches of new values, each with the ascending offsets of its rows."""
    wants_addresses = not columns or columns[-1] == ROW_ADDRESS
    names = columns if columns and wants_addresses else [*columns, ROW_ADDRESS]
    for batch in scan(snapshot, names, fragments=[fragment]).to_batches():
        addresses = batch.column(batch.num_columns - 1).to_numpy()
        read = batch if wants_addresses else batch.select(list(range(batch.num_columns - 1)))
        yield addresses.astype(np.uint32).astype(np.int64), compute(read)


def _physical_rows(batches: Iterator[_Placed], fragment: Fragment, added: Schema) -> Iterator[pa.RecordBatch]:
    """The batches with values inserted at the positions of deleted rows."""
    position, total = 0, fragment.physical_rows
    last: pa.RecordBatch | None = None
    for offsets, batch in batches:
        stop = int(offsets[-1]) + 1
        if stop - position == len(offsets):
            yield batch
        else:
            # For every position the previous row, or the first one at the beginning.
            source = np.zeros(stop - position, dtype=np.int64)
            source[offsets - position] = np.arange(len(offsets))
            yield batch.take(pa.array(np.maximum.accumulate(source)))
        position, last = stop, batch.slice(batch.num_rows - 1)
    if position < total and last is None:
        schema = added.to_arrow()
        yield pa.RecordBatch.from_arrays([pa.nulls(total, field.type) for field in schema], schema=schema)
    elif position < total and last is not None:
        yield last.take(pa.array(np.zeros(total - position, dtype=np.int64)))
