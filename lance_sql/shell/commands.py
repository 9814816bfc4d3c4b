r"""Commands of the shell, which begin with a backslash: ``\d``, ``\timing`` ..."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa
from lance_engine.base import legible_line, nearest_name, without_secrets
from lance_engine.errors import DatasetNotFoundError, LanceError

from lance_sql.display.tables import text_table

if TYPE_CHECKING:
    from lance_sql.shell.loop import Shell

#: command -> description
COMMANDS = {
    "\\d": "list tables; \\d TABLE shows its columns",
    "\\dt": "list tables with rows, fragments and versions",
    "\\timing": "turn timing on or off: \\timing [on|off]",
    "\\c": "work with the datasets of another directory: \\c DIRECTORY",
    "\\i": "run the statements and commands of a file: \\i FILE",
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

#: commands of other shells -> the command with the same arguments
_NAMES = {
    ".columns": "\\d",
    ".maxrows": "\\rows",
    ".open": "\\c",
    ".read": "\\i",
    ".schema": "\\d",
    ".timer": "\\timing",
    "\\d+": "\\d",
}

#: commands of other shells that have no equivalent command -> what to do instead
_ELSEWHERE = {
    ".databases": "Use SHOW DATABASES;",
    ".echo": "Use lance-sql -f FILE to run a file",
    ".headers": "lance-sql --format csv prints other formats",
    ".import": "Use COPY table FROM 'file.csv';",
    ".indexes": "Use lance-sql inspect PATH",
    ".mode": "lance-sql --format csv prints other formats",
    ".output": "lance-sql -o FILE writes results to a file",
    ".once": "lance-sql -o FILE writes results to a file",
    ".print": "Use SELECT 'text';",
    "\\copy": "Use COPY table TO 'file.csv';",
    "\\di": "Use lance-sql inspect PATH",
    "\\dn": "Use SHOW DATABASES;",
    "\\e": "Press the up key to change the last statement",
    "\\h": "Use \\?",
    "\\l": "Use SHOW DATABASES;",
    "\\o": "lance-sql -o FILE writes results to a file",
    "\\x": "lance-sql --format json prints rows as JSON",
}


def as_command(text: str) -> str | None:
    """The command in `text`, None if it is SQL."""
    text = text.strip()
    word = text.rstrip("; ").removesuffix("()").lower()
    if word in _WORDS:
        return _WORDS[word]
    first = word.partition(" ")[0]
    if first in (".help", ".tables"):  # of one command or table
        return _WORDS[first]
    if first in _NAMES:
        return _NAMES[first] + text[len(first) :]
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
        case "\\i", [file]:
            shell.run_script(Path(file.strip("'\"")).read_text(encoding="utf-8"))
        case "\\engine", []:
            click.echo(shell.connection.engine)
        case "\\engine", [engine]:
            shell.connect(engine=engine)
            click.echo(f"engine is now {engine}")
        case "\\c", [directory]:
            shell.connect(directory=directory.strip("'\""))
        case "\\rows", []:
            click.echo(str(shell.max_rows))
        case "\\rows", [number] if number.isdecimal():
            shell.max_rows = int(number)
        case _:
            raise _unknown(name, text)
    return True


def _unknown(name: str, text: str) -> LanceError:
    if name in COMMANDS:
        return LanceError(f"Cannot run '{text}'", remedy=f"{name}: {COMMANDS[name]}")
    remedy = _ELSEWHERE.get(name.lower())
    if remedy is None:
        near = nearest_name(name, [*COMMANDS, *_WORDS])
        remedy = f"Did you mean {near}?" if near else "\\? lists the commands"
    return LanceError(f"Unknown command '{text}'", remedy=remedy)


def _describe(shell: Shell, name: str) -> None:
    from lance_sql.text.reference import Reference

    plain = name.strip("'\"")
    dataset = shell.session.catalog.open(Reference(plain, plain, certain=True, quoted=True))
    if dataset is None:
        near = nearest_name(plain, [table.strip("'") for table in shell.table_names()])
        hint = f"Did you mean {near}? " if near else ""
        raise DatasetNotFoundError(f"Table '{plain}' not found", remedy=f"{hint}\\d lists the tables")
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
        dataset = shell.session.catalog.open(Reference(plain, plain, certain=True, quoted=True))
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
