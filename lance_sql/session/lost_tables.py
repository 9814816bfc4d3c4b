"""Tables that a statement makes or changes in memory, in a session that ends with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_sql.errors import SqlError
from lance_sql.text.kinds import Does, changed_name

if TYPE_CHECKING:
    from lance_sql.session.sql_session import SqlSession
    from lance_sql.text.statement import Statement


def refuse_lost(session: SqlSession, last: Statement, remedy: str) -> None:
    """SqlError if the last statement of `session` made or changed a table or view that ends with it."""
    tokens = last.tokens
    place = changed_name(tokens)
    if not last.does & Does.CHANGES or place == len(tokens):
        return
    names = session.catalog.attached.engine_names()
    kind = names.kind(tokens[place].value)
    is_qualified = [token.text for token in tokens[place + 1 : place + 2]] == ["."]
    if kind is not None and not is_qualified and not names.is_elsewhere:  # not in an attached database
        raise SqlError(
            f"The {kind} {tokens[place].value} is only in memory, and lost when this session ends",
            remedy=remedy,
        )
