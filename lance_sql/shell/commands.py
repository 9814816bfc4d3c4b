r"""Commands of the shell, which begin with a backslash: ``\d``, ``\timing`` ..."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import pyarrow as pa
from lance_engine.base import legible_line, nearest_name, without_secrets
from lance_engine.errors import DatasetNotFoundError, LanceError

from lance_sql.display.formats import BINARY, FORMATS
from lance_sql.display.tables import text_table
from lance_sql.text.tokens import as_string, as_table

if TYPE_CHECKING:
    from lance_sql.shell.loop import Shell

#: How rows are shown: the formats that are text.
_MODES: Final = tuple(name for name in FORMATS if name not in BINARY)

#: modes of other shells -> the same here
_OTHER_MODES: Final = {
    **dict.fromkeys(("ascii", "box", "column", "columns", "duckbox"), "table"),
    "jsonlines": "ndjson",
    "vertical": "line",
}

#: command -> description
COMMANDS = {
    "\\d": "list tables; \\d TABLE shows its columns",
    "\\dt": "list tables with rows, fragments and versions",
    "\\timing": "turn timing on or off: \\timing [on|off]",
    "\\c": "work with the datasets of another directory: \\c DIRECTORY",
    "\\i": "run the statements and commands of a file: \\i FILE",
    "\\engine": "show or change the engine: \\engine [duckdb|datafusion]",
    "\\rows": "set the number of rows shown: \\rows [N]",
    "\\mode": f"set how rows are shown: \\mode [{'|'.join(_MODES)}]",
    "\\x": "show each column in a line of its own, or a table: \\x [on|off]",
    "\\o": "write results to a file, or show them again: \\o [FILE]",
    "\\once": "write the next result to a file: \\once FILE",
    "\\import": "add the rows of a file to a table, which may be new: \\import FILE TABLE",
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
    ".import": "\\import",
    ".maxrows": "\\rows",
    ".mode": "\\mode",
    ".once": "\\once",
    ".open": "\\c",
    ".output": "\\o",
    ".read": "\\i",
    ".schema": "\\d",
    ".timer": "\\timing",
    "\\d+": "\\d",
}

#: commands of other shells that have no equivalent command -> what to do instead
_ELSEWHERE = {
    ".databases": "Use SHOW DATABASES;",
    ".echo": "Use lance-sql -f FILE to run a file",
    ".headers": "\\mode csv writes names in the first line",
    ".indexes": "Use lance-sql inspect PATH",
    ".print": "Use SELECT 'text';",
    "\\copy": "Use COPY table TO 'file.csv';",
    "\\di": "Use lance-sql inspect PATH",
    "\\dn": "Use SHOW DATABASES;",
    "\\e": "Press the up key to change the last statement",
    "\\h": "Use \\?",
    "\\l": "Use SHOW DATABASES;",
}


#: A word of a command; one with spaces is in quotes.
_WORDS_OF: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\S+")


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
    name, *arguments = (word.strip("'\"") for word in _WORDS_OF.findall(text.rstrip("; ")))
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
            shell.run_script(Path(file).read_text(encoding="utf-8"))
        case "\\engine", []:
            click.echo(shell.connection.engine)
        case "\\engine", [engine]:
            shell.connect(engine=engine)
            click.echo(f"engine is now {engine}")
        case "\\c", [directory]:
            shell.connect(directory=directory)
        case "\\rows", []:
            click.echo(str(shell.max_rows))
        case "\\rows", [number] if number.isdecimal():
            shell.max_rows = int(number)
        case "\\mode", []:
            click.echo(shell.format)
        case "\\mode", [mode]:
            shell.format = _mode(mode)
        case "\\x", ([] | ["on"] | ["off"]):
            is_on = shell.format != "line" if not arguments else arguments == ["on"]
            shell.format = "line" if is_on else "table"
            click.echo(f"rows are shown as {'lines' if is_on else 'a table'}")
        case "\\o", ([] | ["stdout"]):
            shell.write_to(None)
        case (("\\o" | "\\once"), [file]):
            shell.write_to(file, once=name == "\\once")
        case "\\import", ([file, table] | ["--csv", file, table]):
            _import(shell, file, table)
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


def _mode(name: str) -> str:
    mode = _OTHER_MODES.get(name.lower(), name.lower())
    if mode in BINARY:
        raise LanceError(f"{mode} is not text", remedy=f"Use COPY (SELECT ...) TO 'file.{mode}';")
    if mode not in _MODES:
        near = nearest_name(mode, _MODES)
        hint = f"Did you mean {near}? " if near else ""
        raise LanceError(f"Unknown mode '{name}'", remedy=f"{hint}The modes are {', '.join(_MODES)}")
    return mode


def _import(shell: Shell, file: str, table: str) -> None:
    target = as_table(table)
    try:
        shell.session.execute(f"DESCRIBE {target}").run(raises=True)
        is_new = False
    except DatasetNotFoundError:
        is_new = True
    what = f"CREATE TABLE {target} AS" if is_new else f"INSERT INTO {target}"
    shell.run_statements(f"{what} FROM {as_string(file)}")


def _describe(shell: Shell, name: str) -> None:
    from lance_sql.text.reference import Reference

    shell.show(shell.session.execute(f"DESCRIBE {as_table(name)}"))
    dataset = shell.session.catalog.open(Reference(name, name, certain=True, quoted=True))
    if dataset is not None:
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
