"""Prepared statements and views, which engines keep together with the datasets that their names meant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from lance_sql.catalog.binding import Binding, View
from lance_sql.text.definitions import view_again
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token


class PreparedStatements:
    """The statements that an engine has prepared: EXECUTE prepares them again, over the newest versions.

    `run` runs a text in the engine. `folds_names`: unquoted names are converted to lower case, otherwise all
    names match in any case. `keeps_plans`: the engine plans a view when it is created, so a statement that
    names it creates it again.
    """

    def __init__(
        self, binding: Binding, run: Callable[[str], object], *, folds_names: bool, keeps_plans: bool = False
    ) -> None:
        self._binding = binding
        self._run = run
        self._folds_names = folds_names
        self._keeps_plans = keeps_plans

    def renew(self, statement: Statement) -> None:
        """Before `statement` runs: prepare again what it executes, and create again what it reads."""
        if self._binding.views:
            self._renew_views(statement, set())
        name = _executed(statement.tokens)
        prepared = None if name is None else self._binding.prepared.get(self._key(name))
        if prepared is None:
            return
        if self._binding.views:
            self._renew_views(prepared, set())
        text = self._binding.bind(prepared).text
        with suppress(
            Exception
        ):  # engines have errors of their own if it is missing, after a renewal that failed
            self._run(f"DEALLOCATE {prepared.tokens[1].text}")
        self._run(text)

    def _renew_views(self, statement: Statement, seen: set[str]) -> bool:
        """Create the views in `statement` again whose datasets have changed; False if nothing has changed."""
        renewed = False
        for token in statement.tokens:
            key = self._key(token)
            view = self._binding.views.get(key) if token.kind in ("word", "quoted") else None
            if view is None or key in seen:
                continue
            seen.add(key)
            of_others = self._renew_views(view.statement, seen)
            bound = self._binding.bind(view.statement)
            same = bound.datasets.keys() == view.datasets.keys()
            if of_others or not same or any(bound.datasets[n] is not view.datasets[n] for n in view.datasets):
                self._run(bound.text)
                self._binding.views[key] = view._replace(datasets=bound.datasets)
                renewed = True
        return renewed

    def ran(self, statement: Statement) -> None:
        """After `statement` ran: PREPARE, DEALLOCATE, CREATE VIEW and DROP VIEW."""
        tokens = statement.tokens
        first = tokens[0].upper if tokens else ""
        if first == "PREPARE" and len(tokens) > 1:
            self._binding.prepared[self._key(tokens[1])] = statement
        elif first == "DEALLOCATE":
            self._binding.prepared.pop(self._key(tokens[-1]), None)
        elif first == "CREATE" and self._keeps_plans:
            self._created(statement)
        elif first == "DROP" and self._keeps_plans and [token.upper for token in tokens[1:2]] == ["VIEW"]:
            self._binding.views.pop(self._key(tokens[-1]), None)

    def _created(self, statement: Statement) -> None:
        view = view_again(statement)
        if view is not None:
            name, again = view
            self._binding.views[self._key(name)] = View(again, self._binding.bind(again).datasets)

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
