"""Functions of DuckDB's Lance extension that change a table: ``SELECT * FROM lance_compact_files('t')``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.table import timespan

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.errors import TableNotFoundError
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find_named
from lance_sql.statements.transactions import refuse_in_transaction
from lance_sql.text.calls import named_table
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, arguments, closing

#: The rows of a call, for the rest of the statement.
_DONE: Final = '(SELECT CAST(1 AS BIGINT) AS "count")'


@dataclass(frozen=True)
class _Action:
    """The arguments after the table, and what a call does."""

    takes: tuple[type, ...]
    usage: str
    run: Callable[..., SqlDataset | None]


def _clean_up(dataset: SqlDataset, seconds: int, unverified: bool) -> None:
    dataset.cleanup(timespan(seconds=seconds), delete_unverified=unverified)


_ACTIONS: Final[Mapping[str, _Action]] = {
    "lance_set_config": _Action(
        (str, str), "'key', 'value'", lambda dataset, key, value: dataset.update_config({key: value})
    ),
    "lance_unset_config": _Action((str,), "'key'", lambda dataset, key: dataset.update_config({key: None})),
    "lance_set_table_metadata": _Action(
        (str, str), "'key', 'value'", lambda dataset, key, value: dataset.update_metadata({key: value})
    ),
    "lance_unset_table_metadata": _Action(
        (str,), "'key'", lambda dataset, key: dataset.update_metadata({key: None})
    ),
    "lance_set_schema_metadata": _Action(
        (str, str), "'key', 'value'", lambda dataset, key, value: dataset.update_schema_metadata({key: value})
    ),
    "lance_unset_schema_metadata": _Action(
        (str,), "'key'", lambda dataset, key: dataset.update_schema_metadata({key: None})
    ),
    "lance_set_column_metadata": _Action(
        (str, str, str),
        "'column', 'key', 'value'",
        lambda dataset, column, key, value: dataset.update_schema_metadata({key: value}, column=column),
    ),
    "lance_unset_column_metadata": _Action(
        (str, str),
        "'column', 'key'",
        lambda dataset, column, key: dataset.update_schema_metadata({key: None}, column=column),
    ),
    "lance_create_scalar_index": _Action(
        (str, str), "'column', 'name'", lambda dataset, column, name: dataset.create_index(column, name=name)
    ),
    "lance_compact_files": _Action((), "", SqlDataset.compact),
    "lance_cleanup_old_versions": _Action((int, bool), "seconds, delete_unverified", _clean_up),
}


def run_actions(session: Session, statement: Statement) -> Statement | None:
    """Run the call in a statement, and return the statement over its result; None without a call.

    UnsupportedFeatureError unless the call is the only table of the statement: an engine may run parts of a
    statement several times, or never.
    """
    if "lance_" not in statement.original.lower():
        return None
    tokens = statement.tokens
    places = [
        place
        for place, token in enumerate(tokens[:-1])
        if token.kind == "word" and token.text.lower() in _ACTIONS and tokens[place + 1].text == "("
    ]
    if not places:
        return None
    place = places[0]
    name = tokens[place].text.lower()
    action = _ACTIONS[name]
    usage = f"{name}({', '.join(filter(None, ('table', action.usage)))})"
    before = [token.upper for token in tokens[:place]]
    end = closing(tokens, place + 1)
    is_alone = (
        len(places) == 1
        and before[-1:] in (["FROM"], ["CALL"])
        and before[0] in ("SELECT", "FROM", "CALL")
        and before.count("FROM") + before.count("CALL") == 1
        and end is not None
        and not any(token.upper in ("FROM", "JOIN", ",") for token in tokens[end + 1 :])
    )
    if end is None or not is_alone:
        raise UnsupportedFeatureError(
            f"{name} changes a table, and must be the only table of a statement",
            remedy=f"Write SELECT * FROM {usage}",
        )
    table, *given = arguments(tokens[place + 2 : end])
    named, values = named_table(table), [_constant(argument) for argument in given]
    if named is None or [type(value) for value in values] != list(action.takes):
        raise UnsupportedFeatureError(f"{name} takes constants", remedy=f"Write SELECT * FROM {usage}")
    dataset = find_named(session.catalog, named[0], quoted=named[1])
    if dataset is None:
        raise TableNotFoundError(named[0])
    refuse_in_transaction(session, name)
    changed = action.run(dataset, *values)
    if changed is not None:
        session.catalog.renew(changed)
    text = statement.original
    head = "SELECT * FROM " if before == ["CALL"] else text[: tokens[place].start]
    return Statement(f"{head}{_DONE}{text[tokens[end].end :]}")


def _constant(argument: list[Token]) -> Any:
    """The value of a constant; None for anything else."""
    if len(argument) != 1:
        return None
    token = argument[0]
    if token.kind == "string":
        return token.value
    if token.kind == "number" and token.text.isdecimal():
        return int(token.text)
    return {"TRUE": True, "FALSE": False}.get(token.upper)
