"""Tab completion in the shell: keywords, functions, tables, their aliases and columns, commands."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from lance_sql.text.kinds import KEYWORDS, NAMED_TABLE, WORDS
from lance_sql.text.tokens import as_name, table_positions, tokenize

#: Keywords after which a table follows.
_BEFORE_TABLE = NAMED_TABLE | {"FROM", "JOIN", "INTO", "UPDATE", "OPTIMIZE", "VACUUM"}
#: The name of a column of the result.
_ALIAS = re.compile(r"\bAS\s+([^\W\d]\w*)", re.IGNORECASE)
_WORD = re.compile(r'"?[\w.]*$')
_PATH = re.compile(r"'([^']*)$")


class SqlCompleter(Completer):
    """Completes the word before the cursor.

    `tables`, `columns` and `functions` are called when names are needed: the tables as statements name them,
    the columns of one, and the functions of the engine. Names may be those of received datasets: they are
    quoted, because Enter runs the line.
    """

    def __init__(
        self,
        tables: Callable[[], Iterable[str]],
        columns: Callable[[str], Iterable[str]],
        commands: Iterable[str],
        functions: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._tables, self._columns, self._commands = tables, columns, tuple(commands)
        self._functions = functions

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.lstrip().startswith("\\") and " " not in before.lstrip():
            yield from _matching(self._commands, before.lstrip())
            return
        path = _PATH.search(before)
        if path is not None and before.count("'") % 2:
            yield from _paths(path[1])
            return
        match = _WORD.search(before)
        word = match[0] if match is not None else ""
        previous = [token.upper for token in tokenize(before[: len(before) - len(word)])][-1:]
        if previous and (previous[0] in _BEFORE_TABLE or before.lstrip().startswith("\\d")):
            yield from _matching(self._tables(), word)
            return
        named = self._named(document.text)
        alias, dot, start = word.rpartition(".")
        if dot:
            table = next((table for name, table in named if name.lower() == alias.lower()), None)
            yield from _matching([] if table is None else map(as_name, self._columns(table)), start)
        elif word:
            columns = {as_name(column) for _, table in named for column in self._columns(table)}
            yield from _matching(sorted(columns), word)
            aliases = {name for name, table in named if name != table} | set(_ALIAS.findall(document.text))
            yield from _matching(sorted({*self._tables(), *map(as_name, aliases)}), word)
            yield from _matching(KEYWORDS, word)
            yield from _matching((f"{name}(" for name in self._functions()), word)

    def _named(self, text: str) -> list[tuple[str, str]]:
        """The tables that a statement names, each under its name and under its alias."""
        tokens = tokenize(text)
        places = table_positions(tokens) | {
            place + 1 for place, token in enumerate(tokens[:-1]) if token.upper in _BEFORE_TABLE
        }
        named = []
        for place in sorted(places):
            table = tokens[place].value
            named.append((table, table))
            following = [token for token in tokens[place + 1 : place + 3] if token.upper != "AS"][:1]
            named += [
                (token.value, table)
                for token in following
                if token.kind == "quoted" or (token.kind == "word" and token.upper not in WORDS)
            ]
        return named


def _matching(words: Iterable[str], start: str) -> Iterator[Completion]:
    folded = start.lower().removeprefix('"')
    for word in words:
        if word.lower().removeprefix('"').startswith(folded) and word != start:
            # Keywords keep the case in which they were started.
            lowered = start and start == folded and word in KEYWORDS
            yield Completion(word.lower() if lowered else word, start_position=-len(start))


def _paths(start: str) -> Iterator[Completion]:
    """Datasets and directories that start with the text."""
    for path in sorted(glob.glob(glob.escape(start) + "*"))[:200]:
        yield Completion(path.replace("'", "''"), start_position=-len(start))
