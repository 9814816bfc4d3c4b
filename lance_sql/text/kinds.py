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
    #: a table without an alias follows the word
    NAMES_TABLE = auto()

    READS = QUERY | SHOWS
    CHANGES = ROWS | OBJECTS


#: The first words of the statements of DuckDB, of DataFusion, and of our own.
KINDS: Final = {
    "(": Does.QUERY,
    "ABORT": Does.TRANSACTION,
    "ALTER": Does.OBJECTS,
    "ANALYZE": Does.OTHER,
    "ATTACH": Does.SESSION,
    "BEGIN": Does.TRANSACTION,
    "CALL": Does.OTHER,
    "CHECKPOINT": Does.OTHER,
    "COMMENT": Does.OBJECTS,
    "COMMIT": Does.TRANSACTION,
    "COPY": Does.NAMES_TABLE,
    "CREATE": Does.OBJECTS,
    "DEALLOCATE": Does.OTHER,
    "DELETE": Does.ROWS,
    "DESC": Does.SHOWS | Does.NAMES_TABLE,
    "DESCRIBE": Does.SHOWS | Does.NAMES_TABLE,
    "DETACH": Does.SESSION,
    "DROP": Does.OBJECTS,
    "END": Does.TRANSACTION,
    "EXECUTE": Does.OTHER,
    "EXPLAIN": Does.OTHER,
    "EXPORT": Does.OTHER,
    "FORCE": Does.OTHER,
    "FROM": Does.QUERY,
    "GRANT": Does.OTHER,
    "IMPORT": Does.OTHER,
    "INSERT": Does.ROWS,
    "INSTALL": Does.OTHER,
    "LOAD": Does.OTHER,
    "MERGE": Does.ROWS,
    "OPTIMIZE": Does.OTHER,
    "PIVOT": Does.NAMES_TABLE,
    "PRAGMA": Does.OTHER,
    "PREPARE": Does.OTHER,
    "REPLACE": Does.OTHER,
    "REINDEX": Does.OTHER,
    "RESET": Does.SESSION,
    "RESTORE": Does.OTHER,
    "REVOKE": Does.OTHER,
    "ROLLBACK": Does.TRANSACTION,
    "SELECT": Does.QUERY,
    "SET": Does.SESSION,
    "SHOW": Does.SHOWS,
    "START": Does.TRANSACTION,
    "SUMMARIZE": Does.SHOWS | Does.NAMES_TABLE,
    "TABLE": Does.QUERY | Does.NAMES_TABLE,
    "TRUNCATE": Does.ROWS,
    "UNPIVOT": Does.NAMES_TABLE,
    "UPDATE": Does.ROWS,
    "USE": Does.SESSION,
    "VACUUM": Does.OTHER,
    "VALUES": Does.QUERY,
    "WITH": Does.QUERY,
}

#: The first words of statements that only lance-sql has.
OURS: Final = frozenset({"OPTIMIZE", "REINDEX", "RESTORE"})

_CLAUSES: Final = (
    "ALTER TABLE", "AND", "AS", "ASC", "AT", "BETWEEN", "BY", "CASE", "CAST", "COUNT", "CREATE INDEX",
    "CREATE TABLE", "CREATE VIEW", "CROSS JOIN", "DELETE FROM", "DISTINCT", "DROP INDEX", "DROP TABLE",
    "ELSE", "EXPLAIN ANALYZE", "GROUP BY", "HAVING", "IN", "INSERT INTO", "INTERVAL", "IS", "JOIN",
    "LEFT JOIN", "LIKE", "LIMIT", "MERGE INTO", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER BY", "OVER",
    "PARTITION BY", "RETURNING", "SHOW TABLES", "SHOW VERSIONS", "SUM", "THEN", "UNION ALL", "USING",
    "VERSION", "WHEN", "WHERE",
)  # fmt: skip
#: What starts a statement, and what may follow.
KEYWORDS: Final = tuple(sorted({*_CLAUSES, *filter(str.isalpha, KINDS)}))
#: The words of these.
WORDS: Final = frozenset(word for keyword in KEYWORDS for word in keyword.split())

#: Keywords that start a statement, and are followed by a table without an alias.
NAMED_TABLE: Final = frozenset(word for word, does in KINDS.items() if does & Does.NAMES_TABLE)

#: The statements that may follow the common tables of WITH, besides queries.
AFTER_WITH: Final = frozenset({"DELETE", "INSERT", "MERGE", "UPDATE"})

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
        return Does.ROWS
    return KINDS.get(first, Does.OTHER)


def contains_change(tokens: Sequence[Token]) -> bool:
    """Whether a statement with these tokens may change rows, maybe in another statement."""
    return any(token.upper in AFTER_WITH for token in tokens)


def changed_name(tokens: Sequence[Token]) -> int:
    """The position of the name of what a statement changes; the number of tokens without one."""
    place = 1
    while place < len(tokens) and tokens[place].kind == "word" and tokens[place].upper in _BEFORE_NAME:
        place += 1
    return min(place, len(tokens))
