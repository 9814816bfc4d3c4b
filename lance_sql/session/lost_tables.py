"""Tables that a statement makes or changes in memory, in a session that ends with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_sql.errors import SqlError
from lance_sql.text.kinds import Does, changed_name

if TYPE_CHECKING:
    from lance_sql.session.sql_session import SqlSession
    from lance_sql.text.statement import Statement


def lost(session: SqlSession, statement: Statement) -> str | None:
    """The table or view in memory that a statement made or changed, None if it is elsewhere."""
    tokens = statement.tokens
    place = changed_name(tokens)
    if not statement.does & Does.CHANGES or place == len(tokens):
        return None
    names = session.catalog.attached.engine_names()
    kind = names.kind(tokens[place].value)
    is_qualified = [token.text for token in tokens[place + 1 : place + 2]] == ["."]
    is_here = kind is not None and not is_qualified and not names.is_elsewhere  # not in an attached database
    return f"The {kind} {tokens[place].value}" if is_here else None


def refuse_lost(session: SqlSession, last: Statement, remedy: str) -> None:
    """SqlError if the last statement of `session` made or changed a table or view that ends with it."""
    name = lost(session, last)
    if name is not None:
        raise SqlError(f"{name} is only in memory, and lost when this session ends", remedy=remedy)
