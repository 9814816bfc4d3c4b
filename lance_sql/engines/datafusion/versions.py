"""What we rely on of DataFusion besides its documented interface, and where its versions differ.

A new version of DataFusion may change each of these; nothing else in lance-sql reads its plans and messages,
or asks which version it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from datafusion import SessionContext

from lance_sql.engines.messages import Messages

# ---- sessions ----------------------------------------------------------------------------------------

#: The catalog and the schema of names without dots.
DEFAULT_SCHEMA: Final = ("datafusion", "public")

#: The rule that passes conditions to scans.
_PASSES_CONDITIONS: Final = "push_down_filter"


def target_partitions(context: SessionContext) -> int | None:
    """The number of partitions in the configuration of `context`, which has no other way to read it."""
    setting = re.search(r"\btarget_partitions = (\d+)", repr(context))
    return int(setting[1]) if setting else None


def without_scan_conditions(context: SessionContext) -> Any:
    """A context with the tables, functions and settings of `context`, whose scans get no conditions.

    None if this version of DataFusion has no rule of this name.
    """
    # The method with which a context can be copied. The copy also reads files by path, but it only gets
    # statements that the original context has planned, up to their scans.
    copy = context.enable_url_table()
    return copy if copy.remove_optimizer_rule(_PASSES_CONDITIONS) else None


def location_of(command: Any) -> str:
    """The location in CREATE EXTERNAL TABLE: from DataFusion 54 on it may have several."""
    (location,) = command.locations() if hasattr(command, "locations") else (command.location(),)
    return str(location)


def is_panic(error: BaseException) -> bool:
    """Whether Rust code panicked; no module exports the class."""
    return type(error).__name__ == "PanicException"


# ---- plans -------------------------------------------------------------------------------------------

_SCAN: Final = re.compile(
    r"^\s*TableScan: (?P<table>.+?)(?: projection=\[(?P<columns>.*?)\])?(?:, \w+=\[.*)?$", re.M
)
_SCAN_BELOW_FILTER: Final = re.compile(r"Filter: (?P<filter>.+)\n\s*TableScan: (?P<table>.+?) projection=")
#: The names of scans of Python objects in physical plans.
_SCANS: Final = ("DatasetExec", "FFI_ExecutionPlan")


class PlannedTable(NamedTuple):
    """A scan in a logical plan: the name of the table, and its columns, None if the plan does not say."""

    table: str
    columns: frozenset[str] | None


def scanned_tables(plan: Any) -> Iterator[PlannedTable]:
    """The scans of a logical plan."""
    for scan in _SCAN.finditer(plan.display_indent()):
        columns = scan["columns"]
        yield PlannedTable(scan["table"], None if columns is None else frozenset(columns.split(", ")) - {""})


def residual_filters(logical_plan: str) -> dict[str, tuple[str, ...]]:
    """Table -> the filter directly above its scan, from the text of a logical plan."""
    return {scan["table"]: (scan["filter"],) for scan in _SCAN_BELOW_FILTER.finditer(logical_plan)}


def puts_nulls_last(plan: Any) -> bool:
    """Whether the logical plan of an ORDER BY sorts nulls last."""
    return "NULLS LAST" in plan.display_indent()


def is_scan(step: str) -> bool:
    """Whether a step of a physical plan, by its name, scans a Python object."""
    return any(name in step for name in _SCANS)


def split_step(line: str) -> tuple[str, str, str]:
    """The name of the step in a line of a plan, its details, and what was measured."""
    step, _, metrics = line.partition(", metrics=[")
    name, _, details = step.partition(": ")
    return name, details, metrics.removesuffix("]")


# ---- messages ----------------------------------------------------------------------------------------

MESSAGES: Final = Messages(
    # The steps in which an error was found, or the class of the error.
    before=re.compile(
        r"^(?:DataFusion error: (?:(?:Optimizer rule '\w+' failed|\w+)\ncaused by\n)+(?:Arrow error: )?)?"
        r"(?:(?:Schema|SQL) [Ee]rror: |Error during planning: )?"
    ),
    wrapped=re.compile(r'^ParserError\("(.*)"\)$', re.DOTALL),
    unknown_column=re.compile(r"No field named "),
    unknown_table=re.compile(r"table '(?:datafusion\.)?(?:public\.)?(.+?)' not found"),
    suggests=("Did you mean",),
    # What Python says where DataFusion combines a NULL with a condition for a dataset; see `unpushed`.
    null_operand=re.compile(r"unsupported operand type\(s\) for [&|]: .*\bBooleanScalar\b", re.DOTALL),
    unexpected=re.compile(r"found: (\w+)$"),
    place=re.compile(r" at Line: (\d+), Column: (\d+)"),
    at_the_end=re.compile(r"found: EOF$"),
)
