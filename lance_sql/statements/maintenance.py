"""Maintenance by the statements of DuckDB's Lance extension: OPTIMIZE, REINDEX, VACUUM LANCE, AUTO_CLEANUP.

Each returns one row: the operation, the table, and what was done, as JSON.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
from lance_engine.table import CLEANUP_AGE, CLEANUP_INTERVAL, CLEANUP_RETAINED, duration, timespan

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.errors import SqlError, TableNotFoundError
from lance_sql.statements.namespaces import options_in_brackets
from lance_sql.statements.options import StatementOptions, compaction_arguments, optimized, refuse_old_tags
from lance_sql.statements.session import Session
from lance_sql.statements.transactions import refuse_in_transaction
from lance_sql.statements.upkeep import find_at, named_at, refuse_more
from lance_sql.text.reference import Reference
from lance_sql.text.tokens import Token

#: Default retention of versions in VACUUM LANCE, as of the extension.
_RETAINED: Final = datetime.timedelta(weeks=2)

_MODES: Final = ("append", "merge", "retrain")

#: Options of AUTO_CLEANUP, and their keys in the configuration of the table.
_CLEANUP_KEYS: Final = {
    "interval": CLEANUP_INTERVAL,
    "older_than": CLEANUP_AGE,
    "retain_versions": CLEANUP_RETAINED,
}


def optimize(session: Session, tokens: Sequence[Token]) -> pa.Table:
    """``OPTIMIZE [TABLE] t [WITH (...)]``: merge small fragments, remove deleted rows, update indices."""
    target, name, options = _target(tokens[1:], "OPTIMIZE")
    read = StatementOptions("OPTIMIZE", options)
    arguments = compaction_arguments(read)
    read.finish()
    dataset = _changed(session, name, "OPTIMIZE")
    changed, metrics = optimized(dataset, arguments)
    session.catalog.renew(changed)
    return _report("compact", target, metrics)


def vacuum(session: Session, tokens: Sequence[Token]) -> pa.Table:
    """``VACUUM LANCE t [WITH (...)]``: remove old versions and the files that only they use."""
    target, name, options = _target(tokens[2:], "VACUUM LANCE")
    read = StatementOptions("VACUUM LANCE", options)
    retained = read.number("retain_n_versions", least=1)
    seconds = read.number("older_than_seconds")
    age = _RETAINED if seconds is None else timespan(seconds=seconds)
    if seconds is None and retained is not None:
        age = datetime.timedelta()
    unverified = bool(read.flag("delete_unverified"))
    refuses_tags = bool(read.flag("error_if_tagged_old_versions"))
    read.finish()
    dataset = _changed(session, name, "VACUUM")
    if refuses_tags:
        refuse_old_tags(dataset, age)
    report = dataset.cleanup(age, retain_versions=retained or 1, delete_unverified=unverified)
    return _report("cleanup", target, asdict(report))


def reindex(session: Session, tokens: Sequence[Token]) -> pa.Table:
    """``REINDEX name ON t [RETRAIN]``."""
    index, rest = _index(tokens[1:], "REINDEX name ON t RETRAIN")
    retrain = bool(rest) and rest[-1].upper == "RETRAIN"
    target, name, options = _target(rest[:-1] if retrain else rest, "REINDEX")
    StatementOptions("REINDEX", options).finish()
    return _optimize_index(session, target, name, index, "retrain" if retrain else "append")


def alter_index(session: Session, tokens: Sequence[Token]) -> pa.Table:
    """``ALTER INDEX name ON t OPTIMIZE [WITH (mode = 'append' | 'merge' | 'retrain')]``."""
    usage = "ALTER INDEX name ON t OPTIMIZE WITH (mode = 'append')"
    index, rest = _index(tokens[2:], usage)
    name, rest = named_at(rest)
    if [token.upper for token in rest[:1]] != ["OPTIMIZE"]:
        raise SqlError("ALTER INDEX of a dataset can only OPTIMIZE it", remedy=f"Write {usage}")
    read = StatementOptions("ALTER INDEX", _with(rest[1:], "ALTER INDEX"))
    mode = read.text("mode") or "append"
    read.finish()
    if mode not in _MODES:
        raise SqlError(f"Unknown mode {mode!r}", remedy=f"Choose from {', '.join(_MODES)}")
    return _optimize_index(session, name.value, name, index, mode)


def _index(tokens: Sequence[Token], usage: str) -> tuple[str, Sequence[Token]]:
    if len(tokens) < 3 or tokens[0].kind not in ("word", "quoted") or tokens[1].upper != "ON":
        raise SqlError("The statement needs the name of an index and a table", remedy=f"Write {usage}")
    return tokens[0].value, tokens[2:]


def _optimize_index(session: Session, target: str, name: Token, index: str, mode: str) -> pa.Table:
    dataset = _changed(session, name, "Optimizing an index")
    changed = dataset.optimize_indices([index], retrain=mode == "retrain")
    session.catalog.renew(changed)
    return _report("optimize_index", target, {"index": index, "mode": mode, "version": changed.version})


def alter_table(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``ALTER TABLE t SET AUTO_CLEANUP WITH (...)`` and ``UNSET AUTO_CLEANUP``; None for other changes."""
    words = [token.upper for token in tokens]
    place = words.index("AUTO_CLEANUP") if "AUTO_CLEANUP" in words else 0
    if words[1:2] != ["TABLE"] or words[place - 1] not in ("SET", "UNSET"):
        return None
    target, name, _ = _target(tokens[2 : place - 1], "ALTER TABLE")
    removed: dict[str, str | None] = dict.fromkeys(_CLEANUP_KEYS.values())
    if words[place - 1] == "UNSET":
        refuse_more(tokens[place + 1 :], "ALTER TABLE t UNSET AUTO_CLEANUP")
        dataset = _changed(session, name, "UNSET AUTO_CLEANUP")
        session.catalog.renew(dataset.update_config(removed))
        return _report("unset_auto_cleanup", target, {"enabled": False})
    read = StatementOptions("AUTO_CLEANUP", _with(tokens[place + 1 :], "AUTO_CLEANUP"))
    interval, age = read.number("interval", least=1), read.text("older_than")
    retained = read.number("retain_versions", least=1)
    read.finish()
    if interval is None or age is None:
        raise SqlError(
            "AUTO_CLEANUP requires interval and older_than",
            remedy="Write SET AUTO_CLEANUP WITH (interval = 20, older_than = '14d', retain_versions = 3)",
        )
    duration(age)
    metrics: dict[str, Any] = {"enabled": True, "interval": interval, "older_than": age}
    if retained is not None:
        metrics["retain_versions"] = retained
    given = {_CLEANUP_KEYS[key]: str(value) for key, value in metrics.items() if key != "enabled"}
    dataset = _changed(session, name, "SET AUTO_CLEANUP")
    session.catalog.renew(dataset.update_config({**removed, **given}))
    return _report("set_auto_cleanup", target, metrics)


def show(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``SHOW MAINTENANCE ON t``: the automatic cleanup of a table; None for other statements."""
    if [token.upper for token in tokens[1:3]] not in (["MAINTENANCE", "ON"], ["MAINTENANCE", "FROM"]):
        return None
    name, rest = named_at(tokens[3:])
    refuse_more(rest, "SHOW MAINTENANCE ON t")
    dataset = session.catalog.open(
        Reference(name.value, name.value, certain=True, quoted=name.kind != "word")
    )
    if dataset is None:
        raise TableNotFoundError(name.value)
    config = dataset.snapshot.manifest.config
    rows = {"enabled": str(CLEANUP_INTERVAL in config).lower()} | {
        option: config[key] for option, key in _CLEANUP_KEYS.items() if key in config
    }
    return pa.table(
        {"key": pa.array(rows.keys(), pa.string()), "value": pa.array(rows.values(), pa.string())}
    )


def _target(tokens: Sequence[Token], statement: str) -> tuple[str, Token, dict[str, str]]:
    """A table as written, its name, and the options after WITH."""
    name, rest = named_at(tokens)
    return name.value, name, _with(rest, statement)


def _with(tokens: Sequence[Token], statement: str) -> dict[str, str]:
    if not tokens:
        return {}
    if tokens[0].upper != "WITH" or tokens[1:2] == [] or tokens[1].text != "(":
        raise SqlError(
            f"Unexpected {tokens[0].text!r}", remedy=f"Write {statement} ... WITH (option = value)"
        )
    return options_in_brackets(list(tokens[1:]), statement)


def _changed(session: Session, name: Token, statement: str) -> SqlDataset:
    dataset = find_at(session, name)
    if dataset is None:
        raise TableNotFoundError(name.value)
    refuse_in_transaction(session, statement)
    return dataset


def _report(operation: str, target: str, metrics: Mapping[str, Any]) -> pa.Table:
    return pa.table(
        {
            "operation": pa.array([operation], pa.string()),
            "target": pa.array([target], pa.string()),
            "metrics_json": pa.array([json.dumps(metrics, separators=(",", ":"))], pa.string()),
        }
    )
