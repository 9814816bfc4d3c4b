"""The main loop of the shell: read a statement or command, run it, print the result."""

from __future__ import annotations

import functools
import io
import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TextIO

import click
from lance_engine.errors import LanceError
from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style
from pygments.lexers.sql import SqlLexer

from lance_sql.display.errors import show_error
from lance_sql.display.formats import BINARY, SHOWING, format_of
from lance_sql.display.output import Rows, write_rows
from lance_sql.progress import TerminalProgress
from lance_sql.session.connection import session_of
from lance_sql.session.lost_tables import lost
from lance_sql.shell.commands import COMMANDS, as_command, run_command
from lance_sql.shell.completion import SqlCompleter
from lance_sql.text.kinds import KINDS
from lance_sql.text.script import split
from lance_sql.text.tokens import Token, as_name, as_string, as_table, tokenize

if TYPE_CHECKING:
    from lance_sql.session.connection import Connection
    from lance_sql.session.sql_session import SqlSession
    from lance_sql.text.statement import Statement


#: What lists the names of functions.
_FUNCTIONS: Final = {
    "duckdb": "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name ~ '^[a-z]\\w+$'"
    " ORDER BY ALL",
    "datafusion": "SELECT DISTINCT routine_name FROM information_schema.routines ORDER BY 1",
}
#: How to keep a table.
_KEPT = "To keep it, open a directory (\\c DIRECTORY), or name a path: CREATE TABLE 'name.lance' AS ..."
#: Seconds after which a statement shows its progress.
_SECONDS = 2.0

#: Colors of the terminal's own palette, which are legible on dark and light backgrounds.
_COLOURS = {
    "pygments.keyword": "ansiblue",
    "pygments.name.builtin": "ansicyan",
    "pygments.literal.string": "ansigreen",
    "pygments.literal.number": "ansimagenta",
    "pygments.comment": "ansibrightblack",
    "pygments.error": "ansired",
}


class Shell:
    """A session in a terminal. `connect` opens a connection for the name of an engine and a directory."""

    def __init__(
        self,
        connect: Callable[[str, str | None], Any],
        engine: str,
        directory: str | None = None,
        *,
        max_rows: int,
        history: str,
    ) -> None:
        self._connect = connect
        self._directory = directory
        self.connection: Connection = connect(engine, directory)
        self.timing = True
        self.has_failed = False
        self.max_rows = max_rows
        #: how rows are shown
        self.format = "table"
        #: where results go in place of the terminal, and whether only the next one does
        self._file: TextIO | None = None
        self._once = False
        self._history = history
        self._known_functions: dict[str, list[str]] = {}

    @cached_property
    def _session(self) -> PromptSession[str]:
        return PromptSession(
            history=FileHistory(os.path.expanduser(self._history)),
            lexer=PygmentsLexer(SqlLexer),
            completer=SqlCompleter(self._tables, self._column_names, COMMANDS, self._functions),
            complete_while_typing=False,
            multiline=Condition(self._continues),
            prompt_continuation=lambda width, number, wrapped: "." * (width - 1) + " ",
            key_bindings=_keys(),
            style=Style.from_dict(_COLOURS),
            include_default_pygments_style=False,
        )

    @property
    def session(self) -> SqlSession:
        """What is behind the connection."""
        return session_of(self.connection)

    def run(self) -> None:
        """Read and run until the end of input, or until ``\\q``."""
        click.echo(f"lance-sql on {self.connection.engine}. Statements end with ; and help lists commands.")
        while True:
            try:
                text = self._session.prompt("lance> ").strip()
            except KeyboardInterrupt:
                continue  # the input is discarded
            except EOFError:
                break
            if text and not self._run(text):
                break
        self.write_to(None)
        self.connection.close()

    def run_script(self, text: str) -> None:
        """Run the statements and commands of a file, or what another program writes."""
        read = ""
        for line in text.splitlines(keepends=True):
            read += line
            if read.strip() and is_complete(read):
                if not self._run(read.strip()):
                    return
                read = ""
        if read.strip():
            self._run(read.strip())

    def _run(self, text: str) -> bool:
        """Run one input; False to leave the shell."""
        try:
            command = as_command(text)
            if command is not None:
                return run_command(self, command)
            self.run_statements(text)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
        except (LanceError, OSError) as error:
            self.has_failed = True
            show_error(error)
        return True

    def run_statements(self, text: str) -> None:
        """Run the statements of `text`, and show the result of each."""
        for statement in split(text):
            begin = time.perf_counter()
            shown = TerminalProgress(after=_SECONDS) if sys.stderr.isatty() else None
            try:
                result = self.session.execute(statement, progress=shown)
                result.run(raises=True)
            finally:
                if shown is not None:
                    shown.close()
            self.show(result)
            self._warn(statement)
            if self.timing:
                click.echo(f"{time.perf_counter() - begin:.3f} s")

    def _warn(self, statement: Statement) -> None:
        """Say so where a statement made a table that ends with the shell, unless it asked for one."""
        words = [token.upper for token in statement.tokens[:4]]
        if words[:1] != ["CREATE"] or {"TEMP", "TEMPORARY", "VIEW", "MACRO"} & set(words):
            return
        name = lost(self.session, statement)
        if name is not None:
            click.echo(f"{name} is only in memory. {_KEPT}", err=True)

    def show(self, rows: Rows) -> None:
        """Print rows, through a pager if they do not fit on the screen, or write them to the chosen file."""
        if self._file is not None:
            format = format_of(self._file.name) if self.format == "table" else self.format
            write_rows(rows, format or "table", self._file, self.max_rows)
            self._file.flush()
            if self._once:
                self.write_to(None)
        elif self.format in SHOWING:
            text = io.StringIO()
            write_rows(rows, self.format, text, self.max_rows)
            is_long = text.getvalue().count("\n") > shutil.get_terminal_size().lines - 4
            show = (
                click.echo_via_pager
                if sys.stdout.isatty() and is_long
                else functools.partial(click.echo, nl=False)
            )
            show(text.getvalue())
        else:
            write_rows(rows, self.format, sys.stdout)

    def write_to(self, path: str | None, *, once: bool = False) -> None:
        """Write results to a file from now on, or the next one with `once`; None shows them again."""
        format = None if path is None else format_of(path)
        if format in BINARY:
            raise LanceError(f"{format} is not text", remedy=f"Use COPY (SELECT ...) TO '{path}';")
        if self._file is not None:
            self._file.close()
        self._file = None if path is None else open(path, "w", encoding="utf-8")  # noqa: SIM115
        self._once = once

    def connect(self, engine: str | None = None, directory: str | None = None) -> None:
        """Switch to another engine or directory; views and settings of the previous session are dropped."""
        directory = self._directory if directory is None else directory
        connection = self._connect(engine or self.connection.engine, directory)
        self.connection.close()
        self.connection, self._directory = connection, directory

    def table_names(self) -> list[str]:
        """Datasets in the directory of the session, and those in the working directory as paths."""
        return [*self._names(), *self._paths()]

    def _tables(self) -> list[str]:
        """The same as statements name them."""
        return [*map(as_name, self._names()), *self._paths()]

    def _names(self) -> list[str]:
        try:
            return self.session.table_names()
        except (LanceError, OSError):
            return []

    def _paths(self) -> list[str]:
        location = self.session.catalog.directory
        if location is not None and os.path.abspath(location) == os.getcwd():
            return []  # these have names
        return sorted(as_string(entry) for entry in os.listdir() if entry.endswith(".lance"))

    def _column_names(self, table: str) -> list[str]:
        from lance_sql.text.reference import Reference

        try:
            dataset = self.session.catalog.open(Reference(table, table, certain=True, quoted=True))
        except (LanceError, OSError):
            return []
        if dataset is not None:
            return list(dataset.schema.names)
        return self._texts(f"DESCRIBE {as_table(table)}") if table in self._names() else []

    def _functions(self) -> list[str]:
        """The functions of the engine, which are read once: there are hundreds."""
        engine = self.connection.engine
        if engine not in self._known_functions:
            self._known_functions[engine] = self._texts(_FUNCTIONS[engine])
        return self._known_functions[engine]

    def _texts(self, query: str) -> list[str]:
        """The first column of a query's result; nothing if it fails."""
        try:
            return [str(value) for value in self.session.execute(query).arrow().column(0).to_pylist()]
        except (LanceError, OSError):
            return []

    def _continues(self) -> bool:
        """Whether Enter starts a new line: the input is not a command, and has no final semicolon yet."""
        text = self._session.default_buffer.text
        return not (is_complete(text) or not text.strip())


def is_complete(text: str) -> bool:
    """Whether `text` is a command, ends with a semicolon, or does not start like a statement.

    Text that does not start like a statement runs at once, so that its error is shown immediately.
    """
    if as_command(text) is not None:
        return True
    tokens = tokenize(text)
    if tokens and not _may_begin(tokens[0]):
        return True
    quotes = {token.text for token in tokens if token.kind == "other"}
    return bool(tokens) and tokens[-1].text == ";" and not quotes & {"'", '"'}  # an unclosed quote or bracket


def _may_begin(token: Token) -> bool:
    """Whether a statement may begin with `token`."""
    return token.upper in KINDS or token.text == ";"


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def run_at_once(event: KeyPressEvent) -> None:
        """Alt-Enter runs the input, with or without a semicolon."""
        event.current_buffer.validate_and_handle()

    return keys
