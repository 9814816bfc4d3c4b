"""Prepared statements, which engines keep together with the datasets that their names meant at that time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from lance_sql.catalog.binding import Binding
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token


class PreparedStatements:
    """The statements that an engine has prepared: EXECUTE prepares them again, over the newest versions.

    `run` runs a text in the engine. `folds_names`: unquoted names are converted to lower case, otherwise all
    names match in any case.
    """

    def __init__(self, binding: Binding, run: Callable[[str], object], *, folds_names: bool) -> None:
        self._binding = binding
        self._run = run
        self._folds_names = folds_names

    def renew(self, statement: Statement) -> None:
        """Before `statement` runs: prepare again what it executes."""
        name = _executed(statement.tokens)
        prepared = None if name is None else self._binding.prepared.get(self._key(name))
        if prepared is None:
            return
        text = self._binding.bind(prepared).text
        with suppress(
            Exception
        ):  # engines have errors of their own if it is missing, after a renewal that failed
            self._run(f"DEALLOCATE {prepared.tokens[1].text}")
        self._run(text)

    def ran(self, statement: Statement) -> None:
        """After `statement` ran: PREPARE and DEALLOCATE."""
        tokens = statement.tokens
        first = tokens[0].upper if tokens else ""
        if first == "PREPARE" and len(tokens) > 1:
            self._binding.prepared[self._key(tokens[1])] = statement
        elif first == "DEALLOCATE":
            self._binding.prepared.pop(self._key(tokens[-1]), None)

    def _key(self, name: Token) -> str:
        exact = self._folds_names and name.kind == "quoted"
        return name.value if exact else name.value.lower()


def _executed(tokens: list[Token]) -> Token | None:
    """The name after ``EXECUTE`` or ``EXPLAIN [ANALYZE] EXECUTE``; None for other statements."""
    words = [token.upper for token in tokens[:3]]
    if not words or words[0] not in ("EXECUTE", "EXPLAIN") or "EXECUTE" not in words:
        return None
    place = words.index("EXECUTE") + 1
    return tokens[place] if place < len(tokens) else None
