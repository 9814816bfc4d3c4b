"""References to Lance datasets in statements: the location, the version, and the metadata table."""

from __future__ import annotations

import datetime
import re
from typing import Any, NamedTuple

from lance_engine.errors import InvalidFilterError

from lance_sql.scratch import scratch


class VersionChoice(NamedTuple):
    """A version by number, tag or time, of a branch or of the main branch; the newest by default."""

    version: int | None = None
    tag: str | None = None
    as_of: datetime.datetime | None = None
    branch: str | None = None

    def __bool__(self) -> bool:
        return self != NEWEST

    @property
    def is_newest(self) -> bool:
        """Whether it refers to whatever version is the newest."""
        return self.version is None and self.tag is None and self.as_of is None

    def __str__(self) -> str:
        """The text after ``@`` in a name."""
        at = self.as_of.isoformat() if self.as_of is not None else self.tag
        choice = str(self.version) if self.version is not None else at
        return "/".join(part for part in (self.branch, choice) if part)

    def within(self, branch: str | None) -> VersionChoice:
        """The same version of `branch`, unless a branch is already given."""
        return self if self.tag or self.branch else self._replace(branch=branch)

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `Dataset.open` for it."""
        choices = {name: getattr(self, name) for name in ("version", "tag", "as_of", "branch")}
        return {name: choice for name, choice in choices.items() if choice is not None}


NEWEST = VersionChoice()


class Reference(NamedTuple):
    """A name in the text that may refer to a Lance table.

    `name` is the name that the engine will look up, `location` the path or table name as written. `part` is
    the metadata table, None for the rows. `certain`: only a table can occur at this position, so a missing
    dataset is an error. `quoted`: written as a string or quoted name.
    """

    name: str
    location: str
    choice: VersionChoice = NEWEST
    part: str | None = None
    certain: bool = False
    quoted: bool = False


def reference_name(location: str, choice: VersionChoice, part: str | None = None) -> str:
    """The name under which a table of the dataset at `location` is registered with an engine."""
    name = f"{location}@{choice}" if choice else location
    return name if part is None else f"{name}.{part}"


_SUFFIX = re.compile(r"(?P<location>.+)@(?P<choice>[^@/]+)|(?P<path>.+\.lance)@(?P<name>[^@]+)", re.DOTALL)


def split_suffix(name: str) -> tuple[str, VersionChoice] | None:
    """``x.lance@3`` or ``x.lance@prod``: the location and the version or name; None without a suffix."""
    match = _SUFFIX.fullmatch(name)
    if match is None:
        return None
    text = match["choice"] or match["name"]
    if text.isdecimal():
        choice = VersionChoice(version=int(text))
    else:
        choice = VersionChoice(branch=text) if "/" in text else VersionChoice(tag=text)
    return match["location"] or match["path"], choice


def moment(expression: str) -> datetime.datetime:
    """The time of a constant SQL expression; without a time zone it is local time.

    InvalidFilterError for other expressions. It may be a string, ``TIMESTAMP '...'``, ``DATE '...'`` or a
    computation with ``now()``.
    """
    literal = re.fullmatch(r"(?i:(?:timestamp(?:tz)?|date)\s*)?'([^']*)'", expression.strip())
    if literal is not None:
        try:
            return datetime.datetime.fromisoformat(literal[1].strip())
        except ValueError:
            pass  # in another format, which DuckDB may accept
    return _computed(expression)


def _computed(expression: str) -> datetime.datetime:
    import duckdb

    with scratch() as connection:
        try:
            text = f"SELECT epoch_us(CAST(({expression}) AS TIMESTAMPTZ))"
            row = connection.execute(text).fetchone()
        except duckdb.Error as error:
            raise InvalidFilterError(
                f"{expression} is not a constant timestamp: {str(error).partition(chr(10))[0]}",
                remedy="Write AT (TIMESTAMP => '2026-01-31 18:00:00')",
            ) from None
    if row is None or row[0] is None:
        raise InvalidFilterError("The timestamp is NULL", remedy="Pass a timestamp")
    return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=row[0])
