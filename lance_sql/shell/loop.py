"""The main loop of the shell: read a statement or command, run it, print the result."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

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
from lance_sql.display.tables import text_table
from lance_sql.session.connection import session_of
from lance_sql.shell.commands import COMMANDS, as_command, run_command
from lance_sql.shell.completion import SqlCompleter
from lance_sql.text.kinds import KINDS
from lance_sql.text.script import split
from lance_sql.text.tokens import Token, as_name, as_string, tokenize

if TYPE_CHECKING:
    import pyarrow as pa

    from lance_sql.session.connection import Connection
    from lance_sql.session.sql_session import SqlSession


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
        self._history = history

    @cached_property
    def _session(self) -> PromptSession[str]:
        return PromptSession(
            history=FileHistory(os.path.expanduser(self._history)),
            lexer=PygmentsLexer(SqlLexer),
            completer=SqlCompleter(self._tables, self._column_names, COMMANDS),
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
            for statement in split(text):
                begin = time.perf_counter()
                self.show(self.session.execute(statement).arrow())
                if self.timing:
                    click.echo(f"{time.perf_counter() - begin:.3f} s")
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
        except (LanceError, OSError) as error:
            self.has_failed = True
            show_error(error)
        return True

    def show(self, table: pa.Table) -> None:
        """Print rows, through a pager if they do not fit on the screen."""
        text = text_table(table, self.max_rows)
        if sys.stdout.isatty() and text.count("\n") > shutil.get_terminal_size().lines - 4:
            click.echo_via_pager(text + "\n")
        else:
            click.echo(text)

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
            return list(self.session.catalog.names())
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
        return [] if dataset is None else list(dataset.schema.names)

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
