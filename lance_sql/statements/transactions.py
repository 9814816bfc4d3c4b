"""BEGIN, COMMIT and ROLLBACK, and statements that are not allowed in transactions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.text.tokens import Token

#: First words of the statements.
FIRST_WORDS = frozenset({"ABORT", "BEGIN", "COMMIT", "END", "ROLLBACK", "START"})

#: ``SET lance_isolation = 'serializable'``: COMMIT also checks the rows that queries read.
ISOLATION_SETTING = "lance_isolation"


def transaction(session: Session, tokens: Sequence[Token]) -> pa.Table:
    """``BEGIN [TRANSACTION]``, ``START TRANSACTION``, ``COMMIT``, ``END``, ``ROLLBACK`` and ``ABORT``."""
    first, *rest = [token.upper for token in tokens]
    if rest not in ([], ["TRANSACTION"], ["WORK"]) or (first == "START" and rest != ["TRANSACTION"]):
        raise UnsupportedFeatureError(
            f"Unsupported: {' '.join(token.value for token in tokens)}",
            remedy="Write BEGIN, COMMIT or ROLLBACK; savepoints and transaction modes are not supported",
        )
    if first in ("BEGIN", "START"):
        session.begin()
    elif first in ("COMMIT", "END"):
        session.commit()
    else:
        session.rollback()
    return done()


def refuse_in_transaction(session: Session, what: str) -> None:
    """Refuse a statement on a dataset that takes effect immediately."""
    if session.catalog.transaction is not None:
        raise UnsupportedFeatureError(
            f"{what} cannot be part of a transaction: it takes effect at once",
            remedy="Run it before BEGIN or after COMMIT",
        )


def isolation_setting(tokens: Sequence[Token]) -> bool | None:
    """Whether ``SET lance_isolation = ...`` asks for serializable transactions; None for other statements."""
    words = [token.value.lower() for token in tokens]
    while len(words) > 1 and words[0] in ("set", "reset") and words[1] in ("session", "global", "local"):
        del words[1]
    if words[1:2] != [ISOLATION_SETTING]:
        return None
    if words == ["reset", ISOLATION_SETTING]:
        return False
    if len(words) == 4 and words[2] in ("=", "to") and words[3] in ("serializable", "snapshot"):
        return words[3] == "serializable"
    raise UnsupportedFeatureError(
        f"{ISOLATION_SETTING} must be snapshot or serializable",
        remedy=f"Write SET {ISOLATION_SETTING} = 'serializable'",
    )
