r"""Commands of the shell, which begin with a backslash: ``\d``, ``\timing`` ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pyarrow as pa
from lance_engine.errors import DatasetNotFoundError, LanceError
from lance_engine.legible import legible_line, without_secrets

from lance_sql.display.tables import text_table

if TYPE_CHECKING:
    from lance_sql.shell.loop import Shell

#: command -> description
COMMANDS = {
    "\\d": "list tables; \\d TABLE shows its columns",
    "\\dt": "list tables with rows, fragments and versions",
    "\\timing": "turn timing on or off: \\timing [on|off]",
    "\\engine": "show or change the engine: \\engine [duckdb|datafusion]",
    "\\rows": "set the number of rows shown: \\rows [N]",
    "\\?": "show this help",
    "\\q": "quit (also exit, quit and Ctrl-D)",
}

#: commands of other shells -> the equivalent command
_WORDS = {
    "exit": "\\q",
    "quit": "\\q",
    ".exit": "\\q",
    ".quit": "\\q",
    "help": "\\?",
    ".help": "\\?",
    ".tables": "\\d",
}


def as_command(text: str) -> str | None:
    """The command in `text`, None if it is SQL."""
    text = text.strip()
    word = text.rstrip("; ").lower()
    if word in _WORDS:
        return _WORDS[word]
    return text if text.startswith(("\\", ".")) else None


def run_command(shell: Shell, text: str) -> bool:
    """Run one command; False to leave the shell. LanceError for unknown commands and invalid arguments."""
    name, *arguments = text.rstrip("; ").split()
    match name, arguments:
        case "\\q", []:
            return False
        case "\\?", []:
            width = max(map(len, COMMANDS))
            click.echo("\n".join(f"{command:<{width}}  {does}" for command, does in COMMANDS.items()))
        case "\\d", []:
            click.echo("\n".join(map(legible_line, shell.table_names())) or "no tables")
        case "\\d", [table]:
            _describe(shell, table)
        case "\\dt", []:
            _list_tables(shell)
        case "\\timing", ([] | ["on"] | ["off"]):
            shell.timing = not shell.timing if not arguments else arguments == ["on"]
            click.echo(f"timing is {'on' if shell.timing else 'off'}")
        case "\\engine", []:
            click.echo(shell.connection.engine)
        case "\\engine", [engine]:
            shell.change_engine(engine)
            click.echo(f"engine is now {engine}")
        case "\\rows", []:
            click.echo(str(shell.max_rows))
        case "\\rows", [number] if number.isdecimal():
            shell.max_rows = int(number)
        case _:
            raise LanceError(f"Unknown command {text!r}", remedy="\\? lists them")
    return True


def _describe(shell: Shell, name: str) -> None:
    from lance_sql.text.reference import Reference

    plain = name.strip("'\"")
    dataset = shell.connection.catalog.open(Reference(plain, plain, certain=True, quoted=True))
    if dataset is None:
        raise DatasetNotFoundError(f"Table {plain!r} not found", remedy="\\d lists the tables")
    rows = [
        {"column": field.name, "type": str(field.type), "null": "" if field.nullable else "not null"}
        for field in dataset.schema
    ]
    shell.show(pa.Table.from_pylist(rows))
    uri = legible_line(without_secrets(dataset.uri))
    click.echo(f"{uri}, version {dataset.version}, {dataset.count_rows():,} rows")


def _list_tables(shell: Shell) -> None:
    from lance_sql.text.reference import Reference

    rows = []
    for name in shell.table_names():
        plain = name.strip("'")
        dataset = shell.connection.catalog.open(Reference(plain, plain, certain=True, quoted=True))
        if dataset is not None:
            rows.append(
                {
                    "table": name,
                    "rows": dataset.count_rows(),
                    "fragments": len(dataset.snapshot.fragments),
                    "version": dataset.version,
                }
            )
    click.echo(text_table(pa.Table.from_pylist(rows), shell.max_rows) if rows else "no tables")
