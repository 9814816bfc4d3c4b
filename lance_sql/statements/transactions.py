"""BEGIN, COMMIT and ROLLBACK, and statements that are not allowed in transactions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.text.tokens import Token


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
