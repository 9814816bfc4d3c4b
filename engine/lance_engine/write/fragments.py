"""Writes the data files of new fragments. They become part of a dataset when a commit refers to them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator

import pyarrow as pa

from lance_engine.file.columns import columns_of
from lance_engine.format.fragment import DataFile, Fragment
from lance_engine.io.closing import Closing
from lance_engine.io.store import Store, delete_quietly
from lance_engine.schema_tree import Schema
from lance_engine.tasks import Pool
from lance_engine.write.check import check_writable
from lance_engine.write.data_file import DataFileWriter
from lance_engine.write.options import WriteOptions
from lance_engine.write.source import conform

DATA_FOLDER = "data"
# Rows written at once: the precision of `max_bytes_per_file`, and of progress reports.
_STEP_ROWS = 1 << 16


def write_fragments(
    store: Store, schema: Schema, batches: Iterable[pa.RecordBatch], options: WriteOptions | None = None
) -> list[Fragment]:
    """Write batches as fragments with one data file each; ids are 0 until the commit assigns them.

    Batches are matched to `schema` by name; see `conform`. If anything fails, including the source of the
    batches, all written files are deleted.
    """
    options = options or WriteOptions()
    check_writable(schema, options.version)
    fragments: list[Fragment] = []
    rows_done = bytes_done = 0
    pieces = _pieces(conform(batches, schema), min(_STEP_ROWS, options.max_rows_per_file))
    piece = next(pieces, None)
    try:
        with (
            Pool(options.threads, "lance-encode") as pool,
            Closing(store) as files,
        ):
            while piece is not None:
                name = data_file_name(options.file_tag)
                with files.create(f"{DATA_FOLDER}/{name}") as sink:
                    writer = DataFileWriter(sink, schema, options, pool)
                    while piece is not None:
                        room = options.max_rows_per_file - writer.rows
                        writer.write(piece.slice(0, room))
                        if options.progress is not None:
                            options.progress(rows_done + writer.rows, bytes_done + writer.size)
                        piece = piece.slice(room) if room < piece.num_rows else next(pieces, None)
                        if writer.rows == options.max_rows_per_file:
                            break
                        if writer.size >= options.max_bytes_per_file:
                            break
                    size = writer.finish()
                fragments.append(_fragment(name, schema, options, writer.rows, size))
                rows_done += writer.rows
                bytes_done += size
        if options.progress is not None:
            options.progress(rows_done, bytes_done)
    except BaseException:
        delete_quietly(store, data_paths(fragments))
        raise
    return fragments


def data_paths(fragments: Iterable[Fragment]) -> list[str]:
    """The paths of the data files of fragments that were just written."""
    return [f"{DATA_FOLDER}/{file.path}" for fragment in fragments for file in fragment.files]


def data_file_name(tag: str = "") -> str:
    """A new random name: 24 binary digits spread files over key ranges of object stores, then 26 of hex."""
    random = uuid.uuid4().bytes
    return f"{int.from_bytes(random[:3]):024b}{tag}{random[3:].hex()}.lance"


def _fragment(name: str, schema: Schema, options: WriteOptions, rows: int, size: int) -> Fragment:
    ids = tuple(field.id for field in columns_of(schema, options.version))
    file = DataFile(name, ids, tuple(range(len(ids))), *options.version, file_size=size)
    return Fragment(id=0, files=(file,), physical_rows=rows)


def _pieces(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches without empty ones, cut to at most `rows` rows."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)
