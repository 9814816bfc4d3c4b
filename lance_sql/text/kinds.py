"""The kinds of statements: what a statement may do, by its first word."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Flag, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lance_sql.text.tokens import Token


class Does(Flag):
    """What a statement may do."""

    OTHER = 0
    #: a query: an engine may run it when its rows are read
    QUERY = auto()
    #: shows something, without changes
    SHOWS = auto()
    #: changes rows of a table
    ROWS = auto()
    #: creates, alters or drops tables and other objects
    OBJECTS = auto()
    #: changes settings, or what names refer to
    SESSION = auto()
    TRANSACTION = auto()
    #: lance-sql may run it, or refuse it, if it is about datasets
    OURS = auto()
    #: what it does is in its syntax tree
    PARSED = auto()
    #: a table without an alias follows the word
    NAMES_TABLE = auto()

    READS = QUERY | SHOWS
    CHANGES = ROWS | OBJECTS


_OWN_QUERY: Final = Does.QUERY | Does.NAMES_TABLE
_OWN_SHOWS: Final = Does.SHOWS | Does.OURS
_ROWS: Final = Does.ROWS | Does.OURS | Does.PARSED
_OBJECTS: Final = Does.OBJECTS | Does.OURS | Does.PARSED
_SESSION: Final = Does.SESSION | Does.OURS

#: The first words of the statements of DuckDB, of DataFusion, and of our own.
KINDS: Final = {
    "(": Does.QUERY,
    "ABORT": Does.TRANSACTION,
    "ALTER": _OBJECTS,
    "ANALYZE": Does.OURS,
    "ATTACH": _SESSION,
    "BEGIN": Does.TRANSACTION,
    "CALL": Does.OURS,
    "CHECKPOINT": Does.OTHER,
    "COMMENT": _OBJECTS,
    "COMMIT": Does.TRANSACTION,
    "COPY": Does.OURS | Does.PARSED | Does.NAMES_TABLE,
    "CREATE": _OBJECTS,
    "DEALLOCATE": Does.OTHER,
    "DELETE": _ROWS,
    "DESC": _OWN_SHOWS | Does.NAMES_TABLE,
    "DESCRIBE": _OWN_SHOWS | Does.NAMES_TABLE,
    "DETACH": _SESSION,
    "DROP": _OBJECTS,
    "END": Does.TRANSACTION,
    "EXECUTE": Does.OTHER,
    "EXPLAIN": Does.OURS,
    "EXPORT": Does.OURS,
    "FORCE": Does.OTHER,
    "FROM": Does.QUERY,
    "GRANT": Does.OTHER,
    "IMPORT": Does.OURS,
    "INSERT": _ROWS,
    "INSTALL": Does.OTHER,
    "LOAD": Does.OTHER,
    "MERGE": _ROWS,
    "OPTIMIZE": Does.OURS,
    "PIVOT": Does.NAMES_TABLE,
    "PRAGMA": Does.OURS,
    "PREPARE": Does.OURS,
    "REPLACE": Does.OTHER,
    "RESET": _SESSION,
    "RESTORE": Does.OTHER,
    "REVOKE": Does.OTHER,
    "ROLLBACK": Does.TRANSACTION,
    "SELECT": Does.QUERY,
    "SET": _SESSION,
    "SHOW": _OWN_SHOWS,
    "START": Does.TRANSACTION,
    "SUMMARIZE": _OWN_SHOWS | Does.NAMES_TABLE,
    "TABLE": _OWN_QUERY,
    "TRUNCATE": _ROWS,
    "UNPIVOT": Does.NAMES_TABLE,
    "UPDATE": _ROWS,
    "USE": _SESSION,
    "VACUUM": Does.OURS,
    "VALUES": Does.QUERY,
    "WITH": Does.QUERY,
}

#: Keywords that start a statement, and are followed by a table without an alias.
NAMED_TABLE: Final = frozenset(word for word, does in KINDS.items() if does & Does.NAMES_TABLE)

#: The statements that may follow the common tables of WITH, besides queries.
_AFTER_WITH: Final = frozenset({"DELETE", "INSERT", "MERGE", "UPDATE"})

#: Keywords between the first word of a statement that changes something and the name of what it changes.
_BEFORE_NAME: Final = frozenset(
    {
        "COLUMN", "EXISTS", "FROM", "IF", "IGNORE", "INTO", "NOT", "ON", "OR", "RECURSIVE", "REPLACE",
        "TABLE", "TEMP", "TEMPORARY", "UNLOGGED", "VIEW",
    }
)  # fmt: skip


def kind_of(tokens: Sequence[Token]) -> Does:
    """What a statement may do. One that begins with WITH may be a change: where a word is one, it counts."""
    first = tokens[0].upper if tokens else ""
    if first == "WITH" and contains_change(tokens):
        return _ROWS
    return KINDS.get(first, Does.OTHER)


def contains_change(tokens: Sequence[Token]) -> bool:
    """Whether a statement with these tokens may change rows, maybe in another statement."""
    return any(token.upper in _AFTER_WITH for token in tokens)


def changed_name(tokens: Sequence[Token]) -> int:
    """The position of the name of what a statement changes; the number of tokens without one."""
    place = 1
    while place < len(tokens) and tokens[place].kind == "word" and tokens[place].upper in _BEFORE_NAME:
        place += 1
    return min(place, len(tokens))
