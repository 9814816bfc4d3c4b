"""How an engine words its errors, so that the same error of any engine becomes the same class."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: Has a group, as patterns that take something out have.
NEVER: Final = re.compile(r"(?!)()")


class Messages(NamedTuple):
    """Patterns of the messages of one engine; those of errors that it does not have never match.

    Removed: `before` at the front, everything from `after` on, the group of `wrapped` without its wrapper.
    `unknown_column`, `named_column` (its name) and `unknown_table` (its name) are errors about names;
    `suggests` are parts of messages that suggest another name. `closed`: a result is read too late.
    `failed`: an error in the engine itself (its ``error``), which then runs no more statements.
    `unexpected` (a word): it stopped to read the statement there. `null_operand`: it cannot pass a condition
    with NULL to a scan. The position is the lines from `pointer` on, or the line and column in `place`, or
    the end of the text where `at_the_end` matches.
    """

    before: re.Pattern[str]
    unknown_column: re.Pattern[str]
    unknown_table: re.Pattern[str]
    suggests: tuple[str, ...]
    named_column: re.Pattern[str] = NEVER
    wrapped: re.Pattern[str] = NEVER
    after: re.Pattern[str] = NEVER
    closed: re.Pattern[str] = NEVER
    failed: re.Pattern[str] = NEVER
    unexpected: re.Pattern[str] = NEVER
    null_operand: re.Pattern[str] = NEVER
    pointer: re.Pattern[str] = NEVER
    place: re.Pattern[str] = NEVER
    at_the_end: re.Pattern[str] = NEVER

    def missing_table(self, message: str) -> str | None:
        """The name of the table that the engine did not find; None for other errors."""
        missing = self.unknown_table.search(message)
        return None if missing is None else missing[1].strip('"')
