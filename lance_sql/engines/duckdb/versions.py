"""What we rely on of DuckDB besides its documented interface.

A new version of DuckDB may change each of these; nothing else in lance-sql uses private names of DuckDB, or
reads its plans and messages. The names of its types are in `lance_sql.types`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lance_sql.engines.messages import Messages

if TYPE_CHECKING:
    import duckdb

# ---- the protocol by which DuckDB 2 scans Python objects ---------------------------------------------

try:
    from duckdb._sources import ArrowScanSource as ArrowScanSource
except ImportError:  # DuckDB is missing or of another major version: it then reads all columns as a stream
    ArrowScanSource = object
HAS_SOURCES: Final = ArrowScanSource is not object

#: The classes of the conditions that it offers, and of their operands: ``Binary(op, left, right)``,
#: ``Unary(op, operand)``, ``Postfix(op, operand)``, ``In(operand, values)``, ``Col(parts)`` and
#: ``Lit(value, type)``. Each has ``fragment()``, its text.
BINARY: Final = "Binary"
UNARY: Final = "Unary"
POSTFIX: Final = "Postfix"
IN: Final = "In"
COLUMN: Final = "Col"
CONSTANT: Final = "Lit"


def class_of(node: Any) -> str:
    """The class of a node, as above."""
    return type(node).__name__


# ---- parameters --------------------------------------------------------------------------------------


def sql(connection: duckdb.DuckDBPyConnection, text: str, params: Any) -> Any:
    """The relation of a statement; None for one without rows, or for a text without a statement.

    DuckDB 1 runs a statement with parameters at once, and holds the lock of Python's interpreter meanwhile. A
    thread of DuckDB that drops a batch would wait for this lock, and the call for the thread: it has no other
    threads then.
    """
    if HAS_SOURCES or not params:
        return connection.sql(text, params=params)
    settings = "SELECT current_setting('threads'), current_setting('lock_configuration')"
    ((threads, is_locked),) = connection.execute(settings).fetchall()
    if is_locked:
        return connection.sql(text, params=params)
    connection.execute("SET threads = 1")
    try:
        return connection.sql(text, params=params)
    finally:
        connection.execute(f"SET threads = {threads}")


# ---- plans -------------------------------------------------------------------------------------------

#: The name of the detail with the estimated number of rows.
ESTIMATE: Final = "Estimated Cardinality"


class Step(NamedTuple):
    """A step of a plan."""

    name: str
    details: Mapping[str, Any]
    children: tuple[Step, ...]

    @property
    def is_scan(self) -> bool:
        """Whether it scans an object of Python."""
        return "ARROW_SCAN" in str(self.details.get("Function", self.name)).upper()

    @property
    def rows(self) -> str:
        """The estimated number of rows."""
        return str(self.details.get(ESTIMATE, ""))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a scan reads, or fields of them."""
        return _texts(self.details.get("Projections", ()))

    @property
    def filters(self) -> tuple[str, ...]:
        """The conditions that a scan applies."""
        return _texts(self.details.get("Filters", ()))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of a step that filters the rows of the one below it."""
        return _texts(self.details.get("Expression", ())) if self.name == "FILTER" else ()


def steps(plan: str) -> tuple[Step, ...]:
    """The steps of the plan that ``EXPLAIN (FORMAT JSON)`` returns."""
    return tuple(_steps(json.loads(plan)))


def _steps(nodes: list[dict[str, Any]]) -> Iterator[Step]:
    for node in nodes:
        yield Step(
            str(node["name"]).strip(), node.get("extra_info", {}), tuple(_steps(node.get("children", [])))
        )


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


# ---- messages ----------------------------------------------------------------------------------------

MESSAGES: Final = Messages(
    before=re.compile(r"^(?:Binder|Catalog|Parser) [Ee]rror: "),
    # The list of all overloads of a function.
    after=re.compile(r"\tCandidate functions:"),
    unknown_column=re.compile(
        r"Referenced (?:table )?column .+? (?:was )?not found|does not have a column named"
    ),
    named_column=re.compile(r'column named "(.+?)"'),
    unknown_table=re.compile(r"Table with name (.+?) does not exist"),
    suggests=("Candidate bindings", "Did you mean"),
    closed=re.compile(r"Connection (?:has )?already (?:been )?closed"),
    # It quotes the first one of the errors that follow.
    failed=re.compile(r"^(?:INTERNAL|FATAL) Error: (?:.*\nOriginal error: )?(?P<error>[^\n]*)", re.DOTALL),
    unexpected=re.compile(r'syntax error at or near "(\w+)"'),
    # The line of the statement, with a marker below the position.
    pointer=re.compile(r"\s*^(?=LINE \d+: )", re.MULTILINE),
)
