"""Refuses statements on a user's own connection that would change a dataset or hide its name.

To DuckDB, a dataset is a view: it would rename the view, or create a table that no query sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.text.kinds import Does, changed_name, kind_of
from lance_sql.text.tokens import Token


def refuse_changes(tokens: Sequence[Token], datasets: Callable[[], Sequence[str]]) -> None:
    """UnsupportedFeatureError if a statement would change a dataset, or redefine its name."""
    start = 0
    for place, token in enumerate([*tokens, None]):
        if token is None or token.text == ";":
            _refuse_change(tokens[start:place], datasets)
            start = place + 1


def _refuse_change(tokens: Sequence[Token], datasets: Callable[[], Sequence[str]]) -> None:
    if not kind_of(tokens) & Does.CHANGES:
        return
    first, place = tokens[0].upper, changed_name(tokens)
    words = {token.upper for token in tokens[1:place]}
    if words.isdisjoint({"TABLE", "VIEW"}) and first in ("ALTER", "CREATE", "DROP"):
        return
    if first == "DROP" and "VIEW" in words:  # the next statement registers again what DuckDB drops
        return
    named = tokens[place : place + 2]
    if not named or (named[-1].text == "." and "COLUMN" not in words):
        return
    name = named[0]
    if any(name.value.lower() == dataset.lower() for dataset in datasets()):
        raise UnsupportedFeatureError(
            f"{first} on {name.value}, which is a dataset: this connection only reads datasets",
            remedy="Use a session around the connection: lance_sql.connect(directory, duckdb=connection)",
        )
