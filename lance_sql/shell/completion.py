"""Tab completion in the shell: keywords, tables and their columns, commands."""

from __future__ import annotations

import glob
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from lance_sql.text.kinds import KINDS
from lance_sql.text.tokens import as_name, table_positions, tokenize

_CLAUSES: Final = (
    "ALTER TABLE", "AND", "AS", "ASC", "AT", "BETWEEN", "BY", "CASE", "CAST", "COUNT", "CREATE INDEX",
    "CREATE TABLE", "DELETE FROM", "DISTINCT", "DROP INDEX", "DROP TABLE", "ELSE", "EXPLAIN ANALYZE",
    "GROUP BY", "HAVING", "IN", "INSERT INTO", "INTERVAL", "IS", "JOIN", "LEFT JOIN", "LIKE", "LIMIT",
    "MERGE INTO", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER BY", "OVER", "PARTITION BY", "RETURNING",
    "SHOW TABLES", "SHOW VERSIONS", "SUM", "THEN", "UNION ALL", "USING", "VERSION", "WHEN", "WHERE",
)  # fmt: skip
#: What starts a statement, and what may follow.
KEYWORDS: Final = tuple(sorted({*_CLAUSES, *filter(str.isalpha, KINDS)}))
#: Keywords after which a table follows.
_BEFORE_TABLE = {"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE", "SUMMARIZE", "OPTIMIZE", "VACUUM"}
_WORD = re.compile(r'"?[\w.]*$')
_PATH = re.compile(r"'([^']*)$")


class SqlCompleter(Completer):
    """Completes the word before the cursor.

    `tables` and `columns` are called when names are needed: the tables as statements name them, and the
    columns of one. Names may be those of received datasets: they are quoted, because Enter runs the line.
    """

    def __init__(
        self,
        tables: Callable[[], Iterable[str]],
        columns: Callable[[str], Iterable[str]],
        commands: Iterable[str],
    ) -> None:
        self._tables, self._columns, self._commands = tables, columns, tuple(commands)

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
        if word:
            yield from _matching(self._columns_in(document.text), word)
            yield from _matching(self._tables(), word)
            yield from _matching(KEYWORDS, word)

    def _columns_in(self, text: str) -> list[str]:
        """The columns of the tables that the statement names."""
        tokens = tokenize(text)
        named = {tokens[position].value for position in table_positions(tokens)}
        named |= {
            following.value for token, following in itertools.pairwise(tokens) if token.upper in _BEFORE_TABLE
        }
        return sorted({as_name(column) for table in named for column in self._columns(table)})


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
