"""The commands of ``lance-sql``."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
from lance_engine.errors import LanceError
from typer.core import TyperGroup

P = ParamSpec("P")

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class QueryByDefault(TyperGroup):
    """``lance-sql "SELECT 1"`` means ``lance-sql query "SELECT 1"``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "--version"):
            args = ["query", *args]
        remaining: list[str] = super().parse_args(ctx, args)
        return remaining


app = typer.Typer(
    cls=QueryByDefault, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True
)


class Format(StrEnum):
    """How rows are written to standard output."""

    table = "table"
    json = "json"
    csv = "csv"
    arrow = "arrow"


class EngineName(StrEnum):
    """The SQL engine that runs a statement."""

    duckdb = "duckdb"
    datafusion = "datafusion"


def _reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """One line on standard error and exit code 1 in place of a traceback, unless ``--debug`` is given."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
            sys.stderr.close()
            raise typer.Exit(0) from None
        except (LanceError, OSError) as error:
            if kwargs.get("debug"):
                raise
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None

    return run


def _print_version(value: bool) -> None:
    if value:
        try:
            installed = importlib.metadata.version("lance-sql")
        except importlib.metadata.PackageNotFoundError:
            installed = "(not installed)"
        typer.echo(f"lance-sql {installed}")
        raise typer.Exit


@app.callback()
def lance_sql(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Query and inspect Lance datasets.

    lance-sql "SELECT count(*) FROM 'sales.lance'"
    """


@app.command()
@_reports_errors
def query(
    text: Annotated[
        str, typer.Argument(metavar="SQL", help="The statement; - reads it from standard input.")
    ],
    format: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.table,
    engine: Annotated[EngineName, typer.Option("--engine", "-e", help="SQL engine.")] = EngineName.duckdb,
    directory: Annotated[
        Path | None, typer.Option("--directory", "-d", help="Directory whose NAME.lance datasets are tables.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan; run nothing.")] = False,
    max_rows: Annotated[int, typer.Option(min=0, help="Rows shown by --format table.")] = 40,
    debug: Debug = False,
) -> None:
    """Run one SQL statement; datasets are named by path, FROM 'sales.lance'."""
    from lance_sql.api import connect
    from lance_sql.cli.output import write_rows

    statement = sys.stdin.read() if text == "-" else text
    with connect(directory, engine.value) as connection:
        if explain:
            typer.echo(str(connection.explain(statement)))
        else:
            write_rows(connection.sql(statement), format.value, max_rows)


@app.command()
@_reports_errors
def inspect(
    path: Annotated[str, typer.Argument(help="Path or URI of a dataset.")],
    at: Annotated[int | None, typer.Option("--at", help="Version to look at; the newest by default.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON object.")] = False,
    debug: Debug = False,
) -> None:
    """Show what a dataset consists of: versions, fragments, columns with their encodings and bytes."""
    from lance_sql.cli.inspection import inspect_dataset

    typer.echo(inspect_dataset(path, at, as_json=json))
