"""Which function answers a statement: one look-up by its first word."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

import pyarrow as pa
from lance_engine.errors import LanceError

from lance_sql.engines.base import Parameters
from lance_sql.statements import namespaces, transactions
from lance_sql.statements.actions import run_actions
from lance_sql.statements.dispatch import change, check
from lance_sql.statements.outcome import done
from lance_sql.statements.refusals import (
    prepared_change,
    refuse_by_words,
    refuse_changes_within,
    refuse_select_into,
)
from lance_sql.statements.session import Rows, Session
from lance_sql.statements.settings import change_setting, with_settings
from lance_sql.text.definitions import qualified
from lance_sql.text.explained import explained_query
from lance_sql.text.kinds import Does
from lance_sql.text.shown import shown
from lance_sql.text.statement import Statement

_Found: TypeAlias = "pa.Table | Rows | Statement | None"
_Handler: TypeAlias = Callable[[Session, Statement, Parameters], _Found]


def answer(session: Session, statement: Statement, params: Parameters) -> pa.Table | Rows | Statement:
    """The result of one statement, or the statement that the engine should run.

    Every statement that changes a dataset is one commit, unless a transaction is open.
    """
    statement = with_settings(session, statement)
    handler = _HANDLERS.get(statement.tokens[0].upper) if statement.tokens else None
    answer = None if handler is None else handler(session, statement, params)
    return statement if answer is None else answer


def _select(session: Session, statement: Statement, params: Parameters) -> _Found:
    if not session.capabilities.computes_statements:
        refuse_select_into(statement.tokens)
    return run_actions(session, statement)


def _transaction(session: Session, statement: Statement, params: Parameters) -> _Found:
    return transactions.transaction(session, statement.tokens)


def _prepare(session: Session, statement: Statement, params: Parameters) -> _Found:
    changed = prepared_change(session, statement)
    statement = qualified(statement, session.catalog.full_name)
    if changed is not None:
        check(session, changed)
    prepared = session.searching.prepared
    if not prepared.keeps(statement, is_change=changed is not None):
        session.select(statement, params)
        prepared.ran(statement)
    return done()


def _deallocate(session: Session, statement: Statement, params: Parameters) -> _Found:
    if not session.searching.prepared.keeps(statement):
        return None
    with suppress(LanceError):  # the engine may know a statement that this one has hidden
        session.select(statement, params)
    return done()


def _execute(session: Session, statement: Statement, params: Parameters) -> _Found:
    search = session.searching.prepared.statement(statement)
    return None if search is statement else answer(session, search, params)


def _explain(session: Session, statement: Statement, params: Parameters) -> _Found:
    asked = explained_query(statement)
    return None if asked is None else session.explain(asked.query, params, analyze=asked.analyze).table()


def _set(session: Session, statement: Statement, params: Parameters) -> _Found:
    if change_setting(session, statement.tokens):
        return done()
    return namespaces.default_setting(session, statement)


def _attach(session: Session, statement: Statement, params: Parameters) -> _Found:
    return namespaces.attach(session, statement.tokens)


def _detach(session: Session, statement: Statement, params: Parameters) -> _Found:
    return namespaces.detach(session, statement.tokens)


def _use(session: Session, statement: Statement, params: Parameters) -> _Found:
    return namespaces.use(session, statement)


def _create_or_drop(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements import secrets

    first, *words = [token.upper for token in statement.tokens[:5]]
    if "SECRET" in words[: 4 if first == "CREATE" else 2]:
        run = secrets.create_secret if first == "CREATE" else secrets.drop_secret
        return run(session, statement.tokens, statement.original)
    if "SCHEMA" in words[:3]:
        return namespaces.schema(session, statement.tokens)
    statement = qualified(statement, session.catalog.full_name)
    answer = change(session, statement, params)
    return statement if answer is None else answer


def _optimize(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements import maintenance

    return maintenance.optimize(session, statement.tokens)


def _reindex(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements import maintenance

    return maintenance.reindex(session, statement.tokens)


def _vacuum(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements import maintenance, upkeep

    tokens = statement.tokens
    if len(tokens) > 2 and tokens[1].upper == "LANCE" and tokens[2].upper not in ("RETAIN", "DRY"):
        return maintenance.vacuum(session, tokens)
    return upkeep.vacuum(session, tokens) if len(tokens) > 1 else None


def _alter(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements import maintenance

    words = [token.upper for token in statement.tokens[:2]]
    if words == ["ALTER", "INDEX"]:
        return maintenance.alter_index(session, statement.tokens)
    answer = maintenance.alter_table(session, statement.tokens)
    return change(session, statement, params) if answer is None else answer


def _call(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements import upkeep

    answer = run_actions(session, statement)
    if answer is None and session.capabilities.computes_statements:
        answer = upkeep.table_info(session, statement)
    return upkeep.call(session, statement.tokens, statement.original) if answer is None else answer


def _load(session: Session, statement: Statement, params: Parameters) -> _Found:
    """``INSTALL lance`` and ``LOAD lance``: there is nothing to do."""
    words = [token.value.upper() for token in statement.tokens if token.upper != "FORCE"]
    return done() if words[1:2] == ["LANCE"] and words[2:] in ([], ["FROM", "COMMUNITY"]) else None


def _show(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements import maintenance, upkeep

    tokens = statement.tokens
    if shown(tokens) is not None:
        return upkeep.show_tables(session, tokens)
    if tokens[0].upper == "SHOW":
        for show in (namespaces.show, maintenance.show, upkeep.show):
            answered = show(session, tokens)
            if answered is not None:
                return answered
    if tokens[0].upper == "PRAGMA":
        return upkeep.table_info(session, statement)
    return upkeep.show_columns(session, tokens)


def _summarize(session: Session, statement: Statement, params: Parameters) -> _Found:
    if session.capabilities.computes_statements:
        return None
    return session.computing().select(statement).arrow()


def _export(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements.databases import export_database

    return export_database(session, statement)


def _import(session: Session, statement: Statement, params: Parameters) -> _Found:
    from lance_sql.statements.databases import import_database

    def run(one: Statement) -> None:
        answered = answer(session, one, None)
        if isinstance(answered, Statement):
            session.select(answered).run(raises=True)

    return import_database(session, statement, run)


def _refuse(session: Session, statement: Statement, params: Parameters) -> None:
    """A statement of the engine alone: `refuse_by_words` decides."""


def _with(session: Session, statement: Statement, params: Parameters) -> _Found:
    answer = change(session, statement, params) if statement.does & Does.ROWS else None
    if answer is None:
        refuse_changes_within(session, statement.tokens)
    return answer


def _checked(handler: _Handler) -> _Handler:
    """`handler`, for statements that some words make meaningless for datasets."""

    def run(session: Session, statement: Statement, params: Parameters) -> _Found:
        refuse_by_words(session, statement.tokens)
        return handler(session, statement, params)

    return run


#: What answers a statement, by its first word. The engine runs statements without an entry, and those
#: whose handler returns None.
_HANDLERS: Final[dict[str, _Handler]] = {
    "SELECT": _select,
    "FROM": _select,
    "WITH": _with,
    **dict.fromkeys(("ABORT", "BEGIN", "COMMIT", "END", "ROLLBACK", "START"), _transaction),
    "PREPARE": _prepare,
    "EXECUTE": _execute,
    "DEALLOCATE": _deallocate,
    "SET": _set,
    "RESET": _set,
    "ATTACH": _attach,
    "DETACH": _detach,
    "USE": _use,
    "OPTIMIZE": _optimize,
    "REINDEX": _reindex,
    **dict.fromkeys(("FORCE", "INSTALL", "LOAD"), _load),
    "CALL": _call,
    **dict.fromkeys(("DESC", "DESCRIBE", "PRAGMA", "SHOW"), _show),
    "SUMMARIZE": _summarize,
    **dict.fromkeys(("COPY", "DELETE", "INSERT", "TRUNCATE", "UPDATE"), change),
    "EXPLAIN": _checked(_explain),
    "VACUUM": _checked(_vacuum),
    **dict.fromkeys(("CREATE", "DROP"), _checked(_create_or_drop)),
    "ALTER": _checked(_alter),
    **dict.fromkeys(("COMMENT", "MERGE"), _checked(change)),
    "ANALYZE": _checked(_refuse),
    "EXPORT": _export,
    "IMPORT": _import,
}
