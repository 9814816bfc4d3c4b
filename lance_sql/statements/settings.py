"""Our own settings: ``SET lance_verify = true``, ``RESET lance_verify``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.errors import SqlError
from lance_sql.pushdown_settings import SETTINGS, initial
from lance_sql.statements.session import Session
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token

_PREFIX: Final = "lance_"
_ISOLATION, _VECTOR_INDEX = "lance_isolation", "lance_vector_index"
#: The values that a setting may have, the initial one last; () for those of `lance_sql.pushdown_settings`.
_VALUES: Final[dict[str, tuple[str, ...]]] = {
    _ISOLATION: ("serializable", "snapshot"),
    _VECTOR_INDEX: ("auto", "off"),
    **dict.fromkeys(SETTINGS, ()),
}


def change_setting(session: Session, tokens: Sequence[Token]) -> bool:
    """Execute SET or RESET of a setting of ours; False for those of the engine."""
    words = [token.value for token in tokens if token.text != ";"]
    if len(words) > 1 and words[1].lower() in ("session", "global", "local"):
        del words[1]
    name = words[1].lower() if len(words) > 1 else ""
    if name not in _VALUES:
        return False
    if session.catalog.restrictions().lock_configuration:
        raise SqlError(f"The setting {name} cannot be changed: the configuration has been locked")
    if words[0].lower() == "reset" and len(words) == 2:
        _set(session, name, None)
    elif len(words) == 4 and words[2].lower() in ("=", "to"):
        _set(session, name, words[3])
    else:
        raise UnsupportedFeatureError(
            f"{name} must have one constant as its value",
            remedy=f"Write SET {name} = '{next(iter(_VALUES[name]), 'true')}' or RESET {name}",
        )
    return True


def _set(session: Session, name: str, value: str | None) -> None:
    allowed = _VALUES[name]
    if not allowed:
        session.pushdowns = session.pushdowns.with_setting(name, initial(name) if value is None else value)
        return
    chosen = allowed[-1] if value is None else value.lower()
    if chosen not in allowed:
        raise UnsupportedFeatureError(
            f"{name} must be {' or '.join(allowed)}", remedy=f"Write SET {name} = '{allowed[0]}'"
        )
    if name == _ISOLATION:
        session.serializable = chosen == "serializable"
    else:
        session.searching.by_index = chosen == "auto"


def with_settings(session: Session, statement: Statement) -> Statement:
    """A statement with the values of our settings in place of ``current_setting('lance_verify')``."""
    text = statement.original
    if "current_setting" not in text.lower() or _PREFIX not in text.lower():
        return statement
    tokens, edits = statement.tokens, []
    for place, token in enumerate(tokens[:-3]):
        shape = token.upper, tokens[place + 1].text, tokens[place + 2].kind, tokens[place + 3].text
        name = tokens[place + 2].value.lower()
        if shape == ("CURRENT_SETTING", "(", "string", ")") and name in _VALUES:
            edits.append((token.start, tokens[place + 3].end, _value(session, name)))
    for start, end, value in reversed(edits):
        text = f"{text[:start]}'{value}'{text[end:]}"
    return Statement(text) if edits else statement


def _value(session: Session, name: str) -> str:
    if name == _ISOLATION:
        return "serializable" if session.serializable else "snapshot"
    if name == _VECTOR_INDEX:
        return "auto" if session.searching.by_index else "off"
    return session.pushdowns.setting(name)
