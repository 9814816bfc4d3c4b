"""``lance-sql convert``: convert between Lance and other file formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from lance_engine.errors import DatasetExistsError, LanceError

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import json_option, open_dataset, storage_option, yes_progress

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_engine.progress import Reporter

#: Endings of names, and the format that they mean.
_ENDINGS = {
    ".lance": "lance", ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "arrow",
    ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow", ".json": "json", ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}  # fmt: skip
_FORMATS = ("lance", "parquet", "csv", "arrow", "ndjson", "json")


class _Source(NamedTuple):
    """Rows to convert, and their number if it is known in advance."""

    reader: pa.RecordBatchReader
    total_rows: int | None


@click.command("convert")
@click.argument("source")
@click.argument("target")
@click.option("--from", "source_format", type=click.Choice(_FORMATS[:4]), help="Format of SOURCE.")
@click.option("--to", "target_format", type=click.Choice(_FORMATS), help="Format of TARGET.")
@click.option("--mode", type=click.Choice(["create", "append", "overwrite"]), default="create")
@click.option("--format-version", type=click.Choice(["2.0", "2.1", "2.2"]), help="Version of Lance files.")
@storage_option
@yes_progress
@json_option
@reports_errors
def convert_command(
    source: str,
    target: str,
    source_format: str | None,
    target_format: str | None,
    mode: str,
    format_version: str | None,
    storage_options: dict[str, str],
    progress: bool | None,
    as_json: bool,
) -> None:
    """Convert between Parquet, CSV, Arrow and Lance, or to JSON.

    \b
    lance-sql convert sales.parquet sales.lance
    lance-sql convert more.csv sales.lance --mode append
    lance-sql convert sales.lance sales.parquet

    Formats are inferred from the file extensions. SOURCE may be a directory of Parquet files. Rows are
    streamed, so memory use does not depend on the size.
    """
    from lance_engine.progress import Reporter

    from lance_sql.progress import bar

    reading = source_format or _format_of(source)
    writing = target_format or _format_of(target)
    if writing != "lance" and mode != "overwrite" and os.path.exists(target):
        raise LanceError("the file exists", path=target, remedy="Use --mode overwrite")
    if writing != "lance" and mode == "append":
        raise click.UsageError("Only Lance datasets can be appended to.")
    with ExitStack() as closing, bar(progress) as told:
        found = _open(source, reading, storage_options, closing)
        counted = _Counted(found, Reporter(told))
        if writing == "lance":
            options = {"data_storage_version": format_version} if format_version else {}
            version = _write_lance(counted.reader, target, mode, storage_options, options)
        else:
            version = None
            _write_file(counted.reader, target, writing)
    if as_json:
        from lance_sql.cli.output import print_json

        print_json({"source": source, "target": target, "rows": counted.rows, "version": version})
    else:
        click.echo(f"{counted.rows:,} rows to {target}" + (f", version {version}" if version else ""))


class _Counted:
    """Counts rows, and reports progress, as they pass through."""

    def __init__(self, source: _Source, reporter: Reporter) -> None:
        import pyarrow as pa

        self.rows = 0
        self._reporter = reporter
        self._total_rows = source.total_rows
        reporter.begin("converting", source.total_rows)
        self.reader = pa.RecordBatchReader.from_batches(source.reader.schema, self._pass(source.reader))

    def _pass(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch
            self.rows += batch.num_rows
            self._reporter.update(self.rows, self._total_rows)
        self._reporter.end()


def _format_of(path: str) -> str:
    if os.path.isdir(path) and not path.rstrip("/").endswith(".lance"):
        return "lance" if os.path.isdir(os.path.join(path, "_versions")) else "parquet"
    found = _ENDINGS.get(Path(path.rstrip("/")).suffix.lower())
    if found is None:
        raise LanceError(
            "cannot infer the format from the file name", path=path, remedy="Pass --from or --to"
        )
    return found


def _open(path: str, format: str, storage_options: Mapping[str, str], closing: ExitStack) -> _Source:
    readers: dict[str, Callable[[str, ExitStack], _Source]] = {
        "parquet": _open_parquet,
        "csv": _open_csv,
        "arrow": _open_arrow,
    }
    if format == "lance":
        dataset = open_dataset(path, storage_options=storage_options)
        return _Source(dataset.scan().to_reader(), dataset.count_rows())
    import pyarrow as pa

    if format not in readers:
        raise LanceError(f"{format} cannot be read", path=path, remedy=f"Formats: {', '.join(_FORMATS[:4])}")
    try:
        return readers[format](path, closing)
    except pa.ArrowException as error:
        raise LanceError(f"the file is not valid {format}: {error}", path=path) from error


def _open_parquet(path: str, closing: ExitStack) -> _Source:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [path] if os.path.isfile(path) else sorted(map(str, Path(path).rglob("*.parquet")))
    if not names:
        raise LanceError("no Parquet files found", path=path)
    files = [closing.enter_context(pq.ParquetFile(name)) for name in names]
    schema = files[0].schema_arrow

    def batches() -> Iterator[pa.RecordBatch]:
        for name, file in zip(names, files, strict=True):
            for batch in file.iter_batches():
                if batch.schema != schema:
                    raise LanceError(
                        "the columns differ from those of the first file",
                        path=name,
                        remedy="Convert this file separately",
                    )
                yield batch

    return _Source(
        pa.RecordBatchReader.from_batches(schema, batches()), sum(file.metadata.num_rows for file in files)
    )


def _open_csv(path: str, closing: ExitStack) -> _Source:
    import pyarrow.csv

    return _Source(closing.enter_context(pyarrow.csv.open_csv(path)), None)


def _open_arrow(path: str, closing: ExitStack) -> _Source:
    """An IPC file or an IPC stream."""
    import pyarrow as pa

    mapped = closing.enter_context(pa.memory_map(path))
    try:
        file = pa.ipc.open_file(mapped)
    except pa.ArrowInvalid:
        mapped.seek(0)
        return _Source(closing.enter_context(pa.ipc.open_stream(mapped)), None)
    batches = (file.get_batch(number) for number in range(file.num_record_batches))
    return _Source(pa.RecordBatchReader.from_batches(file.schema, batches), None)


def _write_lance(
    reader: pa.RecordBatchReader,
    target: str,
    mode: Any,
    storage_options: Mapping[str, str],
    options: Mapping[str, Any],
) -> int:
    from lance_engine.write.dataset import write_dataset

    try:
        return write_dataset(reader, target, mode, storage_options=storage_options or None, **options).version
    except DatasetExistsError as error:
        error.remedy = "Use --mode append or --mode overwrite"
        raise


def _write_file(reader: pa.RecordBatchReader, target: str, format: str) -> None:
    from lance_sql.cli.output import StreamRows, opened, write_rows

    with opened(target, binary=format in ("parquet", "arrow")) as file:
        write_rows(StreamRows(reader), format, file)
