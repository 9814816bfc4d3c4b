"""Parquet, CSV, NDJSON and Arrow files as one stream of batches."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from lance_engine.errors import DatasetNotFoundError, LanceError, SchemaMismatchError, UnsupportedFeatureError
from lance_engine.schema_tree import Schema
from lance_engine.write.source import conform

#: Extension of a file name -> format.
EXTENSIONS = {
    ".lance": "lance", ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "arrow",
    ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow", ".json": "json", ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}  # fmt: skip
READABLE = ("parquet", "csv", "ndjson", "arrow")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
#: Number of bytes from which the types of CSV and NDJSON columns are inferred.
_SAMPLE_BYTES = 8 << 20


class Rows(NamedTuple):
    """Rows of files, and their number if known in advance."""

    reader: pa.RecordBatchReader
    total_rows: int | None


def format_of(path: str) -> str | None:
    """The format that the extension of `path` implies, if any; a compressed file has two extensions."""
    suffixes = Path(path.rstrip("/")).suffixes
    if suffixes and suffixes[-1].lower() in _COMPRESSED:
        suffixes.pop()
    return EXTENSIONS.get(suffixes[-1].lower()) if suffixes else None


def is_dataset_path(path: str) -> bool:
    """Whether `path` is a Lance dataset, by its extension or its versions."""
    return format_of(path) == "lance" or os.path.isdir(os.path.join(path, "_versions"))


def open_files(pattern: str, format: str | None = None, like: pa.Schema | None = None) -> Rows:
    """The rows of a file, of the files that match a glob, or of the files in a directory, ordered by name.

    The first file determines the columns, and `like` the types of CSV and NDJSON columns. Columns of the
    other files are matched by name, and null if missing.
    """
    paths = _matching(pattern, format)
    formats = {path: format or format_of(path) for path in paths}
    for path, read_format in formats.items():
        if read_format not in READABLE:
            raise UnsupportedFeatureError(
                f"{read_format} files cannot be read here"
                if read_format
                else "Cannot infer the format of the file",
                path=path,
                remedy=f"Formats: {', '.join(READABLE)}",
            )
    total = sum(map(_parquet_rows, paths)) if set(formats.values()) == {"parquet"} else None
    streams = ((path, _BATCHES[str(formats[path])]) for path in paths)
    first_path, first = next(streams)
    with _placed(first_path):
        schema, batches = first(first_path, like)

    def rows() -> Iterator[pa.RecordBatch]:
        with _placed(first_path):
            yield from batches
        target = Schema.from_arrow(schema) if len(paths) > 1 else None
        for path, opened in streams:
            assert target is not None
            with _placed(path):
                try:
                    yield from conform(opened(path, schema)[1], target)
                except SchemaMismatchError as error:
                    error.remedy = f"The columns are those of {os.path.basename(first_path)}. {error.remedy}"
                    raise

    return Rows(pa.RecordBatchReader.from_batches(schema, rows()), total)


def _matching(pattern: str, format: str | None) -> list[str]:
    if os.path.isfile(pattern):
        return [pattern]
    if "://" in pattern:
        raise UnsupportedFeatureError(
            "Files on object stores cannot be read here",
            path=pattern,
            remedy="Pass the result of a query: lance_sql.sql(\"FROM read_parquet('s3://...')\")",
        )
    if os.path.isdir(pattern):
        if is_dataset_path(pattern):
            raise UnsupportedFeatureError(
                "The path is a Lance dataset", path=pattern, remedy="Pass lance_sql.open(path)"
            )
        paths = [
            str(path)
            for path in sorted(Path(pattern).rglob("*"))
            if path.is_file() and not path.name.startswith((".", "_"))
        ]
        if format is None:
            paths = [path for path in paths if format_of(path) in READABLE]
        else:
            paths = [path for path in paths if format_of(path) == format]
        if paths:
            return paths
        raise DatasetNotFoundError(
            "No files to read in the directory", path=pattern, remedy=f"Formats: {', '.join(READABLE)}"
        )
    if glob.has_magic(pattern):
        paths = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
        if paths:
            return paths
        raise DatasetNotFoundError("No file matches the pattern", path=pattern)
    raise DatasetNotFoundError("The file does not exist", path=pattern)


@contextmanager
def _placed(path: str) -> Iterator[None]:
    """Add the file to errors."""
    try:
        yield
    except pa.ArrowException as error:
        raise SchemaMismatchError(f"The file cannot be read: {error}", path=path) from error
    except LanceError as error:
        error.at(path=path)
        raise


_Batches = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def _parquet_rows(path: str) -> int:
    import pyarrow.parquet

    with _placed(path):
        return int(pyarrow.parquet.read_metadata(path).num_rows)


def _parquet(path: str, like: pa.Schema | None) -> _Batches:
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(path)

    def batches() -> Iterator[pa.RecordBatch]:
        with file:
            yield from file.iter_batches()

    return file.schema_arrow, batches()


def _types(like: pa.Schema | None) -> pa.Schema | None:
    """The types that CSV and JSON can be converted to."""
    if like is None:
        return None
    return pa.schema([field for field in like if not isinstance(field.type, pa.BaseExtensionType)])


def _csv(path: str, like: pa.Schema | None) -> _Batches:
    import pyarrow.csv

    reader = pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=_SAMPLE_BYTES),
        convert_options=pyarrow.csv.ConvertOptions(column_types=_types(like)),
    )
    return reader.schema, _streamed(reader)


def _ndjson(path: str, like: pa.Schema | None) -> _Batches:
    import pyarrow.json

    reader = pyarrow.json.open_json(
        path,
        read_options=pyarrow.json.ReadOptions(block_size=_SAMPLE_BYTES),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=_types(like)),
    )
    return reader.schema, _streamed(reader)


def _streamed(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with reader:
        yield from reader


def _arrow(path: str, like: pa.Schema | None) -> _Batches:
    """An IPC file or an IPC stream."""
    mapped = pa.memory_map(path)
    try:
        file = pa.ipc.open_file(mapped)
    except pa.ArrowInvalid:
        mapped.seek(0)
        stream = pa.ipc.open_stream(mapped)
        return stream.schema, _streamed(stream)

    def batches() -> Iterator[pa.RecordBatch]:
        with file:
            for number in range(file.num_record_batches):
                yield file.get_batch(number)

    return file.schema, batches()


_BATCHES: dict[str, Callable[[str, pa.Schema | None], _Batches]] = {
    "parquet": _parquet,
    "csv": _csv,
    "ndjson": _ndjson,
    "arrow": _arrow,
}
