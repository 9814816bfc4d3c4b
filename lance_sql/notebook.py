"""Notebooks: ``%load_ext lance_sql.notebook``, then ``%%lance_sql`` before statements.

    %%lance_sql -d warehouse/ --out top
    SELECT category, count(*) FROM sales GROUP BY 1

The result is displayed as a table, and stored under the name given with ``--out``; Arrow tables are displayed
in the same way. A name without a table is a variable of the notebook, and ``$name`` is the value of one.
Cells with the same directory and engine share a session. `lance_sql.progress.bar` shows the progress of long
operations in a cell.
"""

from __future__ import annotations

import itertools
import shlex
from typing import TYPE_CHECKING, Any

from lance_engine.errors import LanceError

from lance_sql.display.tables import html_table, text_table
from lance_sql.text.script import statements

if TYPE_CHECKING:
    from lance_sql.session.connection import Connection
    from lance_sql.session.result import QueryResult

_SHOWN_ROWS = 20
_USAGE = "%%lance_sql [-d DIRECTORY] [-e ENGINE] [-o NAME] [--progress]"


class Magic:
    """Implements ``%lance_sql`` and ``%%lance_sql``; `namespace` receives stored results."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        #: sessions by directory and engine
        self._sessions: dict[tuple[str | None, str], Connection] = {}

    def cell(self, line: str, cell: str | None = None) -> QueryResult:
        """Run the statements of a cell; options are in the first line. Without a cell the line is the SQL."""
        from lance_sql.progress import bar
        from lance_sql.session.connection import session_of
        from lance_sql.session.variables import run

        options, text = ({}, line) if cell is None else (_options(line), cell)
        place = options.get("directory"), options.get("engine", "duckdb")
        session = session_of(self._connection(place))
        with bar(bool(options.get("progress"))) as progress:
            result = run(session, text, self._parameters(text), self._namespace.get, progress)
            result.run()
        # Errors of a running statement are raised when its rows are read.
        result.arrow()
        if "out" in options:
            self._namespace[options["out"]] = result
        return result

    def _connection(self, place: tuple[str | None, str]) -> Connection:
        if place not in self._sessions:
            from lance_sql.api import connect

            self._sessions[place] = connect(*place)
        return self._sessions[place]

    def _parameters(self, text: str) -> dict[str, Any] | None:
        """The variables that are written as ``$name`` in the last statement."""
        tokens = statements(text)[-1].tokens
        names = {
            after.text
            for dollar, after in itertools.pairwise(tokens)
            if dollar.text == "$" and after.kind == "word" and after.start == dollar.end
        }
        for name in names:
            if name not in self._namespace:
                raise LanceError(f"${name} is the value of a variable, and {name} is not one")
        return {name: self._namespace[name] for name in names} or None


def _options(line: str) -> dict[str, Any]:
    names = {
        "-d": "directory", "--directory": "directory", "-e": "engine", "--engine": "engine", "-o": "out",
        "--out": "out",
    }  # fmt: skip
    options: dict[str, Any] = {}
    words = iter(shlex.split(line))
    for word in words:
        if word == "--progress":
            options["progress"] = True
            continue
        value = next(words, None)
        if word not in names or value is None:
            raise LanceError(f"Unexpected {word!r}", remedy=f"Write {_USAGE}")
        if names[word] == "out" and not value.isidentifier():
            raise LanceError(f"{value!r} is not the name of a variable", remedy="Write for example --out top")
        options[names[word]] = value
    return options


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext lance_sql.notebook``."""
    shell.register_magic_function(Magic(shell.user_ns).cell, "line_cell", "lance_sql")
    formats = shell.display_formatter.formatters
    formats["text/html"].for_type_by_name(
        "pyarrow.lib", "Table", lambda table: html_table(table, _SHOWN_ROWS)
    )
    formats["text/plain"].for_type_by_name(
        "pyarrow.lib", "Table", lambda table, printer, _: printer.text(text_table(table, _SHOWN_ROWS))
    )
