"""``lance-sql convert``: convert between Lance and other file formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click
from lance_engine.errors import DatasetExistsError, LanceError
from lance_engine.write import Rows, format_of, is_dataset_path, open_files

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import json_option, open_dataset, pairs, storage_option, yes_progress
from lance_sql.display.formats import BINARY

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_engine.base import Reporter

_READABLE = ("lance", "parquet", "csv", "ndjson", "arrow")
_WRITABLE = (*_READABLE, "json")


@click.command("convert")
@click.argument("source")
@click.argument("target")
@click.option("--from", "source_format", type=click.Choice(_READABLE), help="Format of SOURCE.")
@click.option("--to", "target_format", type=click.Choice(_WRITABLE), help="Format of TARGET.")
@click.option(
    "--csv",
    "csv_options",
    multiple=True,
    callback=pairs,
    metavar="KEY=VALUE",
    help="How to read CSV: an option of DuckDB's read_csv, such as delim=';' or header=false. Repeatable.",
)
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
    csv_options: dict[str, str],
    mode: str,
    format_version: str | None,
    storage_options: dict[str, str],
    progress: bool | None,
    as_json: bool,
) -> None:
    """Convert between Parquet, CSV, NDJSON, Arrow and Lance, or to JSON.

    \b
    lance-sql convert sales.parquet sales.lance
    lance-sql convert 'year=2026/*.csv' sales.lance --mode append
    lance-sql convert sales.csv sales.lance --csv "delim=;" --csv nullstr=NA
    lance-sql convert sales.lance sales.parquet

    Formats are inferred from the file extensions. SOURCE may be a glob, in quotes, or a directory of files
    with the same columns. Rows are streamed, so memory use does not depend on the size.
    """
    from lance_engine.base import Reporter

    from lance_sql.progress import bar

    writing = target_format or _format_of(target)
    if writing != "lance" and mode != "overwrite" and os.path.exists(target):
        raise LanceError("The file exists", path=target, remedy="Use --mode overwrite")
    if writing != "lance" and mode == "append":
        raise click.UsageError("Only Lance datasets can be appended to.")
    with bar(progress) as told:
        if csv_options:
            rows = Rows(_of_csv(source, source_format, csv_options), None)
        else:
            rows = _open(source, source_format, storage_options)
        counted = _Counted(rows, Reporter(told))
        if writing == "lance":
            options = {"data_storage_version": format_version} if format_version else {}
            version = _write_lance(counted.reader, target, mode, storage_options, options)
        else:
            version = None
            _write_file(counted.reader, target, writing)
    if as_json:
        from lance_sql.display.output import print_json

        print_json({"source": source, "target": target, "rows": counted.rows, "version": version})
    else:
        click.echo(f"{counted.rows:,} rows to {target}" + (f", version {version}" if version else ""))


class _Counted:
    """Counts rows, and reports progress, as they pass through."""

    def __init__(self, source: Rows, reporter: Reporter) -> None:
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
    format = format_of(path)
    if format is None:
        raise LanceError(
            "Cannot infer the format from the file name", path=path, remedy="Pass --from or --to"
        )
    return format


def _open(source: str, format: str | None, storage_options: Mapping[str, str]) -> Rows:
    if format == "lance" or (format is None and is_dataset_path(source)):
        dataset = open_dataset(source, storage_options=storage_options)
        return Rows(dataset.scan().to_reader(), dataset.count_rows())
    return open_files(source, format)


def _of_csv(source: str, format: str | None, options: Mapping[str, str]) -> pa.RecordBatchReader:
    """The rows of CSV files as DuckDB reads them with these options."""
    from lance_sql.api import sql
    from lance_sql.text.tokens import as_string

    if (format or format_of(source)) != "csv":
        raise click.UsageError("The options of --csv are for CSV files.")
    for name in options:
        if not name.isidentifier():
            raise click.UsageError(f"Invalid name of an option: {name}")
    given = "".join(f", {name} = {as_string(value)}" for name, value in options.items())
    return sql(f"FROM read_csv({as_string(source)}{given})").reader()


def _write_lance(
    reader: pa.RecordBatchReader,
    target: str,
    mode: Any,
    storage_options: Mapping[str, str],
    options: Mapping[str, Any],
) -> int:
    from lance_engine.write import write_dataset

    try:
        return write_dataset(reader, target, mode, storage_options=storage_options or None, **options).version
    except DatasetExistsError as error:
        error.remedy = "Use --mode append or --mode overwrite"
        raise


def _write_file(reader: pa.RecordBatchReader, target: str, format: str) -> None:
    from lance_sql.display.output import StreamRows, opened, write_rows

    with opened(target, binary=format in BINARY) as file:
        write_rows(StreamRows(reader), format, file)
