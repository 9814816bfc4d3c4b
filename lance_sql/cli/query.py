"""``lance-sql query``: statements from the command line, a file or standard input."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from lance_engine.errors import LanceError

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import pairs, storage_option
from lance_sql.display.formats import BINARY, FORMATS, SHOWING, format_of

if TYPE_CHECKING:
    from lance_sql.session.connection import Connection
    from lance_sql.session.result import QueryResult

#: How to keep a table.
_KEPT = "Pass --directory, or write the path of a dataset: CREATE TABLE 'name.lance' AS ..."
_SETTING = re.compile(r"[A-Za-z_][\w.]*")

engine_option = click.option(
    "--engine", "-e", type=click.Choice(["duckdb", "datafusion"]), default="duckdb", help="SQL engine to use."
)
directory_option = click.option(
    "--directory",
    "-d",
    metavar="DIRECTORY",
    help="Directory whose NAME.lance datasets can be queried as tables.",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    callback=pairs,
    metavar="KEY=VALUE",
    help="Engine setting, such as memory_limit=1GB. Repeatable.",
)


@click.command("query")
@click.argument("sql", required=False)
@click.option("--command", "-c", metavar="SQL", help="The same as the argument SQL.")
@click.option(
    "--file",
    "-f",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Read SQL statements from FILE.",
)
@click.option("--format", type=click.Choice(list(FORMATS)), help="Output format. Default: table.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Write the rows, or the plan, to FILE. The format is inferred from the extension.",
)
@engine_option
@directory_option
@set_option
@storage_option
@click.option("--explain", is_flag=True, help="Show the query plan without running the statement.")
@click.option(
    "--analyze", is_flag=True, help="Run the statement and show the query plan with run-time metrics."
)
@click.option("--metrics", is_flag=True, help="Print scan statistics to stderr.")
@click.option(
    "--max-rows", type=click.IntRange(min=0), default=40, help="Maximum rows shown with --format table."
)
@reports_errors
def query_command(
    sql: str | None,
    command: str | None,
    file: str | None,
    format: str | None,
    as_json: bool,
    output: str | None,
    engine: str,
    directory: str | None,
    settings: dict[str, str],
    storage_options: dict[str, str],
    explain: bool,
    analyze: bool,
    metrics: bool,
    max_rows: int,
) -> None:
    """Run SQL statements. Use the path of a dataset as a table: FROM 'sales.lance'.

    \b
    lance-sql "SELECT category, count(*) FROM 'sales.lance' GROUP BY 1"
    lance-sql -d warehouse/ "SELECT * FROM sales" --format parquet --output sales.parquet
    lance-sql -f upkeep.sql
    echo "SELECT 1" | lance-sql

    Separate several statements with semicolons. The formats table, line and markdown show all results, other
    formats only the last one.
    """
    if [sql, command, file].count(None) != 2:
        raise click.UsageError("Pass a SQL statement, or a file of statements with --file.")
    text = _statement(command if sql is None else sql, file)
    explained = explain or analyze
    chosen = "table" if explained else _format(format, as_json, output)
    with _connect(directory, engine, storage_options) as connection:
        apply_settings(connection, settings)
        if explained:
            plan = connection.explain(text, analyze=analyze)
            if output is None:
                click.echo(str(plan))
            else:
                page = plan.picture() if output.endswith((".html", ".htm")) else f"{plan}\n"
                Path(output).write_text(page, encoding="utf-8")
            return
        run_statements(
            connection, text, chosen, output, max_rows, metrics=metrics, as_json=as_json, ends=True
        )


def _statement(sql: str | None, file: str | None) -> str:
    if sql == "-" or file == "-":
        return sys.stdin.read()
    if sql is not None:
        return sql
    assert file is not None
    return Path(file).read_text(encoding="utf-8")


def _format(format: str | None, as_json: bool, output: str | None) -> str:
    if format is not None or as_json:
        return format or "json"
    if output is None:
        return "table"
    found = format_of(output)
    if found is None:
        raise click.UsageError(f"Cannot infer the format from the extension of {output}: pass --format.")
    return found


def _connect(directory: str | None, engine: str, storage_options: dict[str, str]) -> Connection:
    from lance_sql.api import connect

    return connect(directory, engine, storage_options=storage_options or None)


def apply_settings(connection: Connection, settings: dict[str, str]) -> None:
    """``SET key = 'value'`` for each."""
    for key, value in settings.items():
        if not _SETTING.fullmatch(key):
            raise LanceError(f"Invalid setting name {key!r}")
        quoted = value.replace("'", "''")
        connection.sql(f"SET {key} = '{quoted}'").arrow()


def run_statements(
    connection: Connection,
    text: str,
    format: str,
    output: str | None,
    max_rows: int,
    *,
    metrics: bool = False,
    as_json: bool = False,
    ends: bool = False,
) -> None:
    """Run the statements in `text` and write their results, or the last one, as `query_command` describes.

    `ends`: the session ends with them, and with it the tables in memory.
    """
    from lance_sql.display.output import opened, write_rows
    from lance_sql.session.connection import session_of
    from lance_sql.session.lost_tables import refuse_lost
    from lance_sql.text.script import split

    session = session_of(connection)
    *before, last = split(text)
    with opened(output, binary=format in BINARY) as target:
        for statement in before:
            result = session.execute(statement)
            if format in SHOWING:
                write_rows(result, format, target, max_rows)
                target.write("\n")
            else:
                result.arrow()
        result = session.execute(last)
        if ends:
            refuse_lost(session, last, _KEPT)
        write_rows(result, format, target, max_rows)
    if metrics:
        _show_metrics(result, as_json or format in ("json", "ndjson"))


def _show_metrics(result: QueryResult, as_json: bool) -> None:
    metrics: dict[str, Any] = result.metrics or {
        "seconds": None,
        "bytes_read": 0,
        "rows_read": 0,
        "scans": [],
    }
    if as_json:
        import json

        click.echo(json.dumps(metrics, default=str), err=True)
        return
    seconds = "" if metrics["seconds"] is None else f" in {metrics['seconds']:.3f} s"
    click.echo(f"read {metrics['rows_read']:,} rows, {metrics['bytes_read']:,} bytes{seconds}", err=True)
    for scan in metrics["scans"]:
        filter = "" if scan["filter"] is None else f" where {scan['filter']}"
        click.echo(
            f"  {scan['table']}{filter}: {scan['rows_out']:,} of {scan['rows']:,} rows, "
            f"zones {scan['zones_read']:,} of {scan['zones']:,}, "
            f"pages {scan['pages_read']:,} of {scan['pages']:,}, {scan['bytes_read']:,} bytes",
            err=True,
        )
