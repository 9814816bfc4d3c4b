"""Prepared searches and changes, which engines cannot prepare: texts that run with their values."""

from __future__ import annotations

from lance_engine.errors import InvalidArgumentError, UnsupportedFeatureError

from lance_sql.searches.parameters import parameter_places
from lance_sql.text.searches import search_calls
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import arguments, closing


class PreparedSearches:
    """The statements of a session by their names."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def keeps(self, statement: Statement, *, is_change: bool = False) -> bool:
        """Whether `statement` is PREPARE or DEALLOCATE for one of these, which is then executed.

        `is_change`: it prepares a change of a dataset.
        """
        tokens = statement.tokens
        if not tokens or tokens[0].upper not in ("PREPARE", "DEALLOCATE"):
            return False
        prepared = prepared_by(statement)
        if prepared is not None and (is_change or search_calls(prepared)):
            self._texts[tokens[1].value.lower()] = prepared.original
            return True
        if tokens[0].upper == "DEALLOCATE":
            return self._texts.pop(tokens[-1].value.lower(), None) is not None
        return False

    def ran(self, statement: Statement) -> None:
        """After the engine prepared a statement, and only if it did: another of its name is forgotten."""
        tokens = statement.tokens
        if len(tokens) > 1 and tokens[0].upper == "PREPARE":
            self._texts.pop(tokens[1].value.lower(), None)

    def statement(self, statement: Statement) -> Statement:
        """The statement that ``EXECUTE name(values)`` runs; other statements unchanged."""
        tokens = statement.tokens
        if len(tokens) < 2 or tokens[0].upper != "EXECUTE":
            return statement
        name = tokens[1].value
        text = self._texts.get(name.lower())
        return statement if text is None else Statement.of(_filled(name, text, _values(statement)))


def prepared_by(statement: Statement) -> Statement | None:
    """What ``PREPARE name AS statement`` prepares; None for other statements."""
    words = [token.upper for token in statement.tokens]
    if words[:1] != ["PREPARE"] or "AS" not in words[:-1]:
        return None
    return Statement.of(statement.original[statement.tokens[words.index("AS") + 1].start :])


def _values(statement: Statement) -> dict[str, str]:
    """The values in parentheses, by number or name."""
    tokens = statement.tokens
    if len(tokens) < 3:
        return {}
    values = {}
    given = [argument for argument in arguments(tokens[3 : closing(tokens, 2)]) if argument]
    for number, argument in enumerate(given, 1):
        if any(token.kind == "parameter" or token.text == "$" for token in argument):
            raise UnsupportedFeatureError(
                "The values of a prepared statement cannot be parameters here",
                remedy="Write them, or run the statement itself with params=",
            )
        named = len(argument) > 2 and argument[1].text in (":=", "=>")
        value = argument[2:] if named else argument
        text = statement.original[value[0].start : value[-1].end]
        whole = len(value) == 1 or value[0].text == "["
        values[argument[0].value if named else str(number)] = text if whole else f"({text})"
    return values


def _filled(name: str, text: str, values: dict[str, str]) -> str:
    pieces, done, used = [], 0, set()
    for start, end, parameter in parameter_places(Statement.of(text).tokens):
        if parameter not in values:
            raise InvalidArgumentError(f"EXECUTE {name} has no value for parameter {parameter}")
        pieces += [text[done:start], values[parameter]]
        used.add(parameter)
        done = end
    unused = values.keys() - used
    if unused:
        raise InvalidArgumentError(f"EXECUTE {name} has a value for an unknown parameter: {min(unused)}")
    return "".join([*pieces, text[done:]])
