"""CREATE SECRET and DROP SECRET: credentials for datasets as well as for files of the engine."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from lance_engine.errors import ExternalAccessError, UnsupportedFeatureError

from lance_sql.catalog.secrets import KINDS, secret
from lance_sql.errors import SqlError
from lance_sql.statements.namespaces import options_in_brackets
from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.text.tokens import Token

#: Tokens between CREATE and the name.
_MODIFIERS = ("OR", "REPLACE", "TEMPORARY", "PERSISTENT", "SECRET", "IF", "NOT", "EXISTS")


def create_secret(session: Session, tokens: Sequence[Token], text: str) -> pa.Table | None:
    """``CREATE [OR REPLACE] SECRET [name] (TYPE S3, KEY_ID '...', SECRET '...')``; None for other types."""
    if not session.catalog.restrictions().enable_external_access:
        raise ExternalAccessError(
            "This session creates no secrets, because its setting enable_external_access is false",
            remedy="Create them before SET enable_external_access = false",
        )
    start = next((place for place, token in enumerate(tokens) if token.text == "("), None)
    if start is None:
        return None
    given = options_in_brackets(list(tokens[start:]), "CREATE SECRET")
    kind = given.pop("type", "").lower()
    if kind not in KINDS:
        return None
    words = [token.upper for token in tokens[:start]]
    if "PERSISTENT" in words or words[-2:-1] == ["IN"]:
        raise UnsupportedFeatureError(
            "Sessions keep no secrets beyond their end",
            remedy="Write CREATE SECRET at the start of each session, or pass storage_options",
        )
    names = [token.value for token in tokens[1:start] if token.upper not in _MODIFIERS]
    name = names[0] if names else f"__default_{kind}"
    secrets = session.catalog.secrets
    if name in secrets and "REPLACE" not in words:
        if "EXISTS" in words:
            return done()
        raise SqlError(f"The secret {name} already exists", remedy="Write CREATE OR REPLACE SECRET")
    made = secret(name, kind, given)
    if kind != "lance":
        _tell_engine(session, text)
    secrets[name] = made
    return done()


def drop_secret(session: Session, tokens: Sequence[Token], text: str) -> pa.Table | None:
    """``DROP SECRET [IF EXISTS] name``; None for a secret that only the engine has."""
    name = tokens[-1].value
    if tokens[1].upper == "PERSISTENT":  # these are the engine's
        return None
    if session.catalog.secrets.pop(name, None) is None:
        return None
    _tell_engine(session, text)
    return done()


def _tell_engine(session: Session, text: str) -> None:
    """Create the secret in DuckDB as well, unless the extension that would use it is missing."""
    if not session.capabilities.computes_statements:
        return
    try:
        session.select(text).arrow()
    except SqlError as error:
        message = error.message.lower()
        if not any(word in message for word in ("extension", "not found", "non-existent")):
            raise
