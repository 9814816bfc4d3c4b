"""``lance-sql shell``: an interactive SQL shell with completion, highlighting and history."""

from __future__ import annotations

import re
import sys

import click

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import directory_of, storage_option
from lance_sql.cli.query import apply_settings, directory_option, engine_option, run_statements, set_option


@click.command("shell")
@click.argument("place", metavar="[DIRECTORY]", required=False)
@engine_option
@directory_option
@set_option
@storage_option
@click.option("--max-rows", type=click.IntRange(min=0), default=200, help="Maximum rows shown per result.")
@click.option(
    "--history",
    type=click.Path(dir_okay=False),
    envvar="LANCE_SQL_HISTORY",
    default="~/.lance_sql_history",
    help="History file.",
)
@reports_errors
def shell_command(
    place: str | None,
    engine: str,
    directory: str | None,
    settings: dict[str, str],
    storage_options: dict[str, str],
    max_rows: int,
    history: str,
) -> None:
    """Start an interactive SQL shell. Statements end with a semicolon.

    \b
    lance-sql shell
    lance-sql shell warehouse/

    Each dataset in DIRECTORY is a table. Without DIRECTORY, use paths: FROM 'sales.lance'.
    Tab completes tables, columns and keywords. Ctrl-C cancels the running statement; \\? lists the
    shell commands.
    """
    if place is not None:
        if directory is not None:
            raise click.UsageError("Pass the directory either as an argument or with -d, not both.")
        directory = directory_of(place)
    from lance_sql.api import connect

    script = None if sys.stdin.isatty() else sys.stdin.read()  # of a file or another program
    if script is not None and not re.search(r"^\s*[.\\]", script, re.MULTILINE):
        with connect(directory, engine, storage_options=storage_options or None) as connection:
            apply_settings(connection, settings)
            run_statements(connection, script, "table", None, max_rows, ends=True)
        return
    try:
        import prompt_toolkit  # noqa: F401
        import pygments  # noqa: F401
    except ImportError as error:
        from lance_engine.errors import LanceError

        raise LanceError(
            f"The shell needs the package {error.name}", remedy="Install it: pip install 'lance-sql[shell]'"
        ) from None
    from lance_sql.shell.loop import Shell

    def connected(name: str, directory: str | None) -> object:
        connection = connect(directory, name, storage_options=storage_options or None)
        if name == engine:  # the settings are those of this engine
            apply_settings(connection, settings)
        return connection

    shell = Shell(connected, engine, directory, max_rows=max_rows, history=history)
    if script is None:
        shell.run()
        return
    shell.timing = False
    shell.run_script(script)
    shell.write_to(None)
    if shell.has_failed:
        sys.exit(1)
