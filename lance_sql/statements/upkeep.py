"""Statements that are parsed here: VACUUM, SHOW and CALL."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from lance_engine.base import nearest_name
from lance_engine.errors import LanceError
from lance_engine.table import duration

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.definitions import describe
from lance_sql.catalog.metadata import metadata_table
from lance_sql.errors import SqlError, TableNotFoundError
from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find_named
from lance_sql.statements.transactions import refuse_in_transaction
from lance_sql.text.metadata_tables import DESCRIPTIONS, METADATA_TABLES
from lance_sql.text.reference import Reference
from lance_sql.text.shown import ALL_TABLES, shown
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token

#: Default retention of versions in VACUUM.
_RETAINED = datetime.timedelta(days=7)


def vacuum(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``VACUUM t [RETAIN n HOURS] [DRY RUN]``: remove old versions and the files that only they use."""
    name, rest = named_at(tokens[1:])
    dataset = find_at(session, name)
    if dataset is None:
        return None
    refuse_in_transaction(session, "VACUUM")
    retained, dry_run = _RETAINED, False
    words = [token.upper for token in rest]
    if words[:1] == ["RETAIN"] and len(words) >= 3 and words[1].isdecimal():
        retained = duration(f"{words[1]} {words[2]}")
        rest, words = rest[3:], words[3:]
    if words[:2] == ["DRY", "RUN"]:
        dry_run, rest = True, rest[2:]
    refuse_more(rest, "VACUUM t RETAIN 7 DAYS DRY RUN")
    report = asdict(dataset.cleanup(retained, dry_run=dry_run))
    report["versions"] = list(report["versions"])
    report["damaged_references"] = list(report["damaged_references"])
    return pa.Table.from_pylist([report])


def show_columns(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``DESCRIBE t``, ``SHOW t`` or ``SHOW ns.t`` of a dataset, with what DuckDB does not learn of it."""
    names, dots = tokens[1::2], tokens[2::2]
    if len(names) != len(dots) + 1 or any(dot.text != "." for dot in dots):
        return None
    if any(token.kind not in ("word", "quoted", "string") for token in names):
        return None
    name = ".".join(token.value for token in names)
    quoted = len(names) == 1 and names[0].kind != "word"
    dataset = session.catalog.open(Reference(name, name, quoted=quoted))
    if dataset is None:
        return None
    if session.capabilities.computes_statements:
        return describe(dataset, "describe")
    return session.select(f"DESCRIBE {''.join(token.text for token in tokens[1:])}").arrow()


def table_info(session: Session, statement: Statement) -> pa.Table | None:
    """``PRAGMA table_info('t')`` or ``CALL pragma_table_info('t')`` of a dataset, and ``storage_info``."""
    tokens = statement.tokens
    call = [token.value.lower() for token in tokens[1:]]
    part = DESCRIPTIONS.get(f"pragma_{call[0].removeprefix('pragma_')}") if call else None
    if part is None or len(call) != 4 or call[1] + call[3] != "()":
        return None
    dataset = session.catalog.open(Reference(tokens[3].value, tokens[3].value))
    return None if dataset is None else describe(dataset, part)


def show_tables(session: Session, tokens: Sequence[Token]) -> pa.Table:
    """``SHOW TABLES`` and ``SHOW ALL TABLES``, in all spellings."""
    if shown(tokens) == "columns":
        return session.select(ALL_TABLES).arrow()
    return pa.table({"name": pa.array(session.table_names(), pa.string())})


def show(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``SHOW VERSIONS | FRAGMENTS | INDEXES | ... FROM t``."""
    what = tokens[1].upper if len(tokens) > 1 else ""
    part = what.lower()
    if part not in METADATA_TABLES or len(tokens) < 3:
        return None
    rest = tokens[3:] if tokens[2].upper in ("FROM", "IN", "OF", "ON") else tokens[2:]
    name, rest = named_at(rest)
    refuse_more(rest, f"SHOW {what} FROM t")
    reference = Reference(name.value, name.value, certain=True, quoted=name.kind != "word")
    dataset = session.catalog.open(reference)
    if dataset is None:
        raise TableNotFoundError(name.value)
    return metadata_table(dataset, part)


def call(session: Session, tokens: Sequence[Token], text: str) -> pa.Table | None:
    """``CALL restore('t', 3)`` and the other procedures; arguments by position or by name."""
    from sqlglot import exp, parse_one

    name = tokens[1].value.lower() if len(tokens) > 1 else ""
    procedure = _PROCEDURES.get(name)
    if procedure is None:
        near = nearest_name(name, _PROCEDURES)
        if near or not session.capabilities.has_procedures:
            hint = f"Did you mean {near}? " if near else ""
            raise SqlError(
                f"Unknown procedure {name!r}", remedy=f"{hint}Choose from {', '.join(_PROCEDURES)}"
            )
        return None
    parsed = parse_one(text[tokens[1].start :], dialect="duckdb")
    names = ("table", *procedure[0])
    given: dict[str, Any] = {}
    for place, argument in enumerate(parsed.expressions):
        if isinstance(argument, exp.Kwarg | exp.PropertyEQ):
            key, value = argument.this.name.lower(), argument.expression
        else:
            key, value = names[place] if place < len(names) else "", argument
        if key == "table" and isinstance(value, exp.Column):  # the name of a table looks like one
            value = exp.Literal.string(".".join(part.name for part in value.parts))
        if key not in names or not isinstance(value, exp.Literal):
            raise SqlError(
                f"{name}: unexpected argument {argument.sql(dialect='duckdb')}", remedy=_usage(name)
            )
        given[key] = int(value.name) if not value.is_string else value.name
    if "table" not in given:
        raise SqlError(f"{name} needs a table", remedy=_usage(name))
    table = str(given.pop("table"))
    is_path = session.catalog.attached.find(table) is None
    dataset = find_named(session.catalog, table, quoted=is_path)
    if dataset is None:
        raise TableNotFoundError(table)
    refuse_in_transaction(session, f"CALL {name}")
    try:
        changed = procedure[1](dataset, **given)
    except LanceError:
        raise
    except TypeError:
        raise SqlError(f"Wrong arguments for {name}", remedy=_usage(name)) from None
    if changed is not None:
        session.catalog.renew(changed)
        return pa.table({"version": pa.array([changed.version], pa.uint64())})
    return done()


def _restore(dataset: SqlDataset, version: int | str) -> SqlDataset:
    return dataset.restore(version if isinstance(version, int) else dataset.tags.get(version).version)


def _create_tag(dataset: SqlDataset, name: str, version: int | None = None) -> None:
    dataset.tags.create(name, version)


def _update_tag(dataset: SqlDataset, name: str, version: int | None = None) -> None:
    dataset.tags.update(name, version)


def _delete_tag(dataset: SqlDataset, name: str) -> None:
    dataset.tags.delete(name)


def _create_branch(dataset: SqlDataset, name: str, version: int | None = None) -> None:
    dataset.branches.create(name, version)


def _delete_branch(dataset: SqlDataset, name: str) -> None:
    dataset.branches.delete(name)


#: Procedure -> the names of its arguments after the table, and its function.
_PROCEDURES: Mapping[str, tuple[tuple[str, ...], Callable[..., SqlDataset | None]]] = {
    "restore": (("version",), _restore),
    "create_tag": (("name", "version"), _create_tag),
    "update_tag": (("name", "version"), _update_tag),
    "delete_tag": (("name",), _delete_tag),
    "create_branch": (("name", "version"), _create_branch),
    "delete_branch": (("name",), _delete_branch),
}


def _usage(name: str) -> str:
    return f"Write CALL {name}({', '.join(['table', *_PROCEDURES[name][0]])})"


def named_at(tokens: Sequence[Token]) -> tuple[Token, Sequence[Token]]:
    """The name of a table, and the tokens after it."""
    if tokens and tokens[0].upper == "TABLE":
        tokens = tokens[1:]
    if not tokens or tokens[0].kind not in ("word", "string", "quoted"):
        raise SqlError("The statement needs a table name")
    length = 1
    while [token.text for token in tokens[length : length + 1]] == ["."] and len(tokens) > length + 1:
        length += 2
    if length == 1:
        return tokens[0], tokens[1:]
    name = ".".join(token.value for token in tokens[:length:2])
    return Token("word", name, tokens[0].start), tokens[length:]


def refuse_more(tokens: Sequence[Token], usage: str) -> None:
    if tokens:
        raise SqlError(f"Unexpected {tokens[0].text!r}", remedy=f"Write {usage}")


def find_at(session: Session, name: Token) -> SqlDataset | None:
    return find_named(session.catalog, name.value, quoted=name.kind != "word")
