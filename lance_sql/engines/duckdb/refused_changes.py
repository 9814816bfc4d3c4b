"""Refuses statements on a user's own connection that would change a dataset or hide its name.

To DuckDB, a dataset is a view: it would rename the view, create a table that no query sees, or write a CSV
file where a dataset was asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.text.kinds import AFTER_WITH, OURS, Does, changed_name, kind_of
from lance_sql.text.tokens import Token


def refuse_changes(tokens: Sequence[Token], datasets: Callable[[], Sequence[str]]) -> None:
    """UnsupportedFeatureError if a statement would change a dataset, or redefine its name."""
    start = 0
    for place, token in enumerate([*tokens, None]):
        if token is None or token.text == ";":
            _refuse_change(tokens[start:place], datasets)
            start = place + 1


def _refuse_change(tokens: Sequence[Token], datasets: Callable[[], Sequence[str]]) -> None:
    words = [token.upper for token in tokens]
    match words:
        case ["PREPARE" | "WITH", *rest]:
            start = next((place for place, word in enumerate(rest, 1) if word in AFTER_WITH), None)
            if start is not None:
                _refuse_change(tokens[start:], datasets)
            return
        case ["ATTACH", *_]:
            name = None
            is_ours = ("TYPE", "LANCE") in itertools.pairwise(words)
        case ["COPY", *_]:
            name = tokens[1] if "FROM" in words[2:3] else None
            is_ours = ("FORMAT", "LANCE") in itertools.pairwise(words) or any(
                token.kind == "string" and token.value.lower().endswith(".lance") for token in tokens
            )
        case ["EXPORT", "DATABASE", *_]:  # which would leave the datasets out
            name, is_ours = None, bool(datasets())
        case (
            ["ALTER", "INDEX", *_]
            | ["VACUUM", "LANCE", *_]
            | ["SHOW", "INDEXES" | "INDEX" | "MAINTENANCE", *_]
        ):
            name, is_ours = None, True
        case ["VACUUM", _, *_]:
            name, is_ours = tokens[1], False
        case ["CREATE" | "DROP", "INDEX", *_] | ["CREATE", "UNIQUE", "INDEX", *_]:
            name = tokens[words.index("ON") + 1] if "ON" in words[:-1] else None
            is_ours = False
        case _:
            name, is_ours = _redefined(tokens), bool(OURS.intersection(words[:1]))
    if is_ours:
        is_long = words[0] in ("ALTER", "EXPORT", "SHOW", "VACUUM")
        what = f"{' '.join(words[: 2 if is_long else 1])} needs a session"
    elif name is not None and _is_dataset(name, datasets):
        what = f"{words[0]} on {name.value}, which is a dataset"
    else:
        return
    raise UnsupportedFeatureError(
        f"{what}: this connection only reads datasets",
        remedy="Use a session around the connection: lance_sql.connect(directory, duckdb=connection)",
    )


def _is_dataset(name: Token, datasets: Callable[[], Sequence[str]]) -> bool:
    value = name.value.lower()
    return (name.kind != "word" and value.endswith(".lance")) or any(
        value == one.lower() for one in datasets()
    )


def _redefined(tokens: Sequence[Token]) -> Token | None:
    """The name of the table whose rows or definition a statement changes."""
    if not kind_of(tokens) & Does.CHANGES:
        return None
    first, place = tokens[0].upper, changed_name(tokens)
    words = {token.upper for token in tokens[1:place]}
    if words.isdisjoint({"TABLE", "VIEW"}) and first in ("ALTER", "CREATE", "DROP"):
        return None
    if first == "DROP" and "VIEW" in words:  # the next statement registers again what DuckDB drops
        return None
    named = tokens[place : place + 2]
    if not named or (named[-1].text == "." and "COLUMN" not in words):
        return None
    return named[0]
