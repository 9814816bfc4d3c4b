"""ATTACH, DETACH, USE, CREATE SCHEMA, DROP SCHEMA, and SHOW statements about namespaces."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.catalog.attached import SESSION
from lance_sql.catalog.namespaces import MAIN, DirectoryNamespace, Namespace, is_remote, named
from lance_sql.catalog.service import connect_service
from lance_sql.errors import SqlError
from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.statements.transactions import refuse_in_transaction
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, arguments, closing, quote, tokenize

_USAGE = "Write ATTACH 'directory' AS name (TYPE LANCE)"

_LISTED = "SHOW DATABASES lists the catalogs; ATTACH adds one"

_NAMES = ("word", "quoted")


def attach(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``ATTACH [IF NOT EXISTS] 'place' [AS name] (TYPE LANCE, option value)``; None without that type."""
    start = next((place for place, token in enumerate(tokens) if token.text == "("), len(tokens))
    options = options_in_brackets(list(tokens[start:]), "ATTACH") if start < len(tokens) else {}
    words = [token.upper for token in tokens[1:start]]
    rest = list(tokens[1:start])
    if options.pop("type", "").lower() != "lance":
        _refuse_namespace(session, words, rest)
        return None
    if words[:1] == ["DATABASE"]:
        del rest[0], words[0]
    replace, if_missing = words[:2] == ["OR", "REPLACE"], words[:3] == ["IF", "NOT", "EXISTS"]
    rest = rest[2 if replace else 3 if if_missing else 0 :]
    match rest:
        case [place]:
            name = _base_name(place.value) or place.value
        case [place, as_word, alias] if as_word.upper == "AS":
            name = alias.value
        case _:
            raise SqlError("ATTACH needs a place and a name", remedy=_USAGE)
    attached = session.catalog.attached
    if if_missing and attached.get(name) is not None:
        return done()
    _refuse_database(session, name)
    attached.attach(name, _namespace(session, place.value, options), replace=replace)
    return done()


def _refuse_namespace(session: Session, words: Sequence[str], tokens: Sequence[Token]) -> None:
    """Refuse the name of a directory of datasets for a database of the engine."""
    name = tokens[-1].value if words[-2:-1] == ["AS"] else _base_name(tokens[-1].value) if tokens else ""
    if session.catalog.attached.get(name) is not None:
        raise SqlError(
            f"{name!r} is already attached", remedy="Choose another name with AS, or DETACH this one first"
        )


def _base_name(place: str) -> str:
    return os.path.basename(place.rstrip("/")).partition(".")[0]


def _refuse_database(session: Session, name: str) -> None:
    """Refuse the name of a database of the engine for a directory: one of them would hide the other."""
    known = {"temp", "system", *map(str.lower, session.databases())}
    if name.lower() in known and session.capabilities.computes_statements:
        raise SqlError(
            f"{name!r} is already attached", remedy="Choose another name with AS, or DETACH this one first"
        )


def options_in_brackets(tokens: list[Token], statement: str) -> dict[str, str]:
    """``(NAME value, NAME = value, NAME)`` as lower-case names and values."""
    end = closing(tokens, 0)
    if end is None or end != len(tokens) - 1:
        raise SqlError(f"The options of {statement} must be in parentheses", remedy="Write (TYPE ...)")
    options = {}
    for argument in arguments(tokens[1:end]):
        values = [token for token in argument[1:] if token.text not in ("=", "=>")]
        if not argument or len(values) > 1:
            raise SqlError(
                f"Each option of {statement} needs a name and a value", remedy="Write (NAME 'value')"
            )
        options[argument[0].value.lower()] = values[0].value if values else "true"
    return options


def _namespace(session: Session, place: str, options: dict[str, str]) -> Namespace:
    storage_options = session.catalog.storage_options
    kind = options.pop("impl", "rest" if "endpoint" in options else "dir").lower()
    if kind != "dir":
        session.catalog.options_of(options.get("endpoint", f"{kind}://{place}"))  # may be refused
        return connect_service(kind, place, options, storage_options)
    if options:
        raise SqlError(
            f"Unknown option {next(iter(options)).upper()} of a directory",
            remedy="Options of ATTACH are TYPE, IMPL and ENDPOINT; storage options are those of connect()",
        )
    expanded = place if is_remote(place) else os.path.abspath(os.path.expanduser(place))
    catalog = session.catalog
    return DirectoryNamespace(expanded, catalog.options_within(expanded), catalog)


def detach(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``DETACH [DATABASE] [IF EXISTS] name``; None for databases attached to the engine."""
    refuse_in_transaction(session, "DETACH")
    name = tokens[-1].value if len(tokens) > 1 else ""
    if session.catalog.attached.detach(name):
        return done()
    if session.capabilities.computes_statements:
        return None
    if [token.upper for token in tokens[-3:-1]] == ["IF", "EXISTS"]:
        return done()
    raise SqlError(f"No catalog is attached as {name!r}", remedy=_LISTED)


def use(session: Session, statement: Statement) -> pa.Table:
    """``USE name`` and ``USE name.schema``, also with databases and schemas of the engine."""
    parts = [token.value for token in statement.tokens[1:] if token.kind in _NAMES]
    if not _use(session, parts):
        if not session.capabilities.computes_statements:
            raise SqlError(f"No catalog or schema is named {'.'.join(parts)!r}", remedy=_LISTED)
        session.select(statement).arrow()  # if the engine has no such name, the default stays as it is
        session.catalog.attached.leave()
    return done()


def _use(session: Session, parts: Sequence[str]) -> bool:
    """Make a schema of datasets the default, if `parts` name one."""
    attached = session.catalog.attached
    if not parts or not attached.use(parts):
        return False
    if attached.engine_names().is_elsewhere:
        session.select(f"USE {'.'.join(map(quote, session.first_schema()))}").arrow()
    return True


def default_setting(session: Session, statement: Statement) -> pa.Table | None:
    """``SET schema = 's'``, ``SET search_path = 's'`` and RESET of them, which are USE; None for others."""
    tokens = [token for token in statement.tokens if token.text != ";"]
    words = [token.upper for token in tokens]
    place = 2 if words[1:2] in (["SESSION"], ["GLOBAL"], ["LOCAL"]) else 1
    if words[place : place + 1] not in (["SCHEMA"], ["SEARCH_PATH"]):
        return None
    if not session.capabilities.computes_statements:
        raise SqlError(f"{tokens[place].value} is a setting of DuckDB", remedy="Write USE name")
    attached = session.catalog.attached
    if words[0] == "RESET":
        session.select(statement).arrow()
        attached.reset()
        return done()
    *names, last = _paths(tokens[place + 2 :])
    if not names and _use(session, last):
        return done()
    ours = next((path for path in (*names, last) if attached.get(path[0]) is not None), None)
    if ours is not None:
        raise UnsupportedFeatureError(
            f"{'.'.join(ours)} contains datasets, and cannot be part of a search path",
            remedy="Write USE name",
        )
    session.select(statement).arrow()
    attached.leave()
    return done()


def _paths(tokens: Sequence[Token]) -> list[list[str]]:
    """The parts of each name in the value of a search path."""
    inside = [
        part for token in tokens for part in (tokenize(token.value) if token.kind == "string" else [token])
    ]
    return [[token.value for token in path if token.kind in _NAMES] or [""] for path in arguments(inside)]


def schema(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``CREATE SCHEMA [IF NOT EXISTS] ns.s`` and ``DROP SCHEMA [IF EXISTS] ns.s``."""
    words = [token.upper for token in tokens]
    creates = words[0] == "CREATE"
    rest = list(tokens[words.index("SCHEMA") + 1 :])
    lenient = [token.upper for token in rest[:3]]
    skipped = lenient[:3] == ["IF", "NOT", "EXISTS"] if creates else lenient[:2] == ["IF", "EXISTS"]
    if skipped:
        rest = rest[3 if creates else 2 :]
    cascades = bool(rest) and rest[-1].upper == "CASCADE"
    if cascades or (rest and rest[-1].upper == "RESTRICT"):
        rest.pop()
    parts = [token.value for token in rest if token.kind in _NAMES]
    schema = session.catalog.attached.schema(parts) if parts else None
    if schema is None:
        return None
    name, namespace, wanted = schema
    refuse_in_transaction(session, f"{words[0]} SCHEMA")
    known = named(wanted, namespace.schemas())
    if creates:
        if known is None:
            namespace.create_schema(wanted)
        elif not skipped:
            raise SqlError(
                f"The schema {name}.{known} already exists", remedy="Write CREATE SCHEMA IF NOT EXISTS"
            )
        return done()
    if known is None:
        if skipped:
            return done()
        raise SqlError(f"{name} has no schema {wanted!r}", remedy="Write IF EXISTS")
    if known == MAIN:
        raise UnsupportedFeatureError(
            f"The schema {name}.{MAIN} cannot be dropped", remedy=f"Use DETACH {name}"
        )
    tables = namespace.tables(known)
    if tables:
        raise SqlError(
            f"The schema {name}.{known} has tables: {', '.join(tables[:10])}",
            remedy="Drop its tables first, with DROP TABLE",
        )
    namespace.drop_schema(known)
    return done()


def show(session: Session, tokens: Sequence[Token]) -> pa.Table | None:
    """``SHOW DATABASES`` and ``SHOW TABLES FROM ns``; None for other statements."""
    words = [token.upper for token in tokens[1:] if token.text != ";"]
    attached = session.catalog.attached
    if words == ["DATABASES"]:
        names = sorted({*session.databases(), *attached.names()})
        return pa.table({"database_name": pa.array(names, pa.string())})
    if len(words) > 2 and words[0] == "TABLES" and words[1] in ("FROM", "IN"):
        parts = [token.value for token in tokens[3:] if token.kind in _NAMES]
        tables = _tables_of(session, parts) if len(parts) in (1, 2) else None
        if tables is None:
            raise SqlError(
                f"No catalog or schema is named {'.'.join(parts)!r}",
                remedy=_LISTED,
            )
        return pa.table({"name": pa.array(tables, pa.string())})
    return None


def _tables_of(session: Session, parts: Sequence[str]) -> list[str] | None:
    """The tables of a catalog, of a schema in it, or of a schema of the current catalog; None if unknown."""
    attached = session.catalog.attached
    current = attached.current or (SESSION, MAIN)
    if len(parts) == 1 and parts[0].lower() == current[1].lower() and attached.get(parts[0]) is None:
        return session.table_names()
    namespace = attached.get(parts[0])
    if namespace is None and len(parts) == 1 and attached.current is not None:
        inside = attached.get(current[0])
        if inside is not None and named(parts[0], inside.schemas()) is not None:
            return inside.tables(parts[0])
    if namespace is not None:
        schema = named(parts[1] if len(parts) == 2 else MAIN, namespace.schemas())
        if schema is None:
            return None
        given = (
            set(session.catalog.names()) - set(session.catalog.tables())
            if attached.get(SESSION) is namespace and schema == MAIN
            else set()
        )
        return sorted(given.union(namespace.tables(schema)))
    if parts[0].lower() not in ("temp", *map(str.lower, session.databases())):
        return None
    database, schema = parts[0].lower(), parts[-1].lower() if len(parts) == 2 else None
    return sorted(
        row["table_name"]
        for row in session.listing("information_schema.tables").to_pylist()
        if row["table_catalog"].lower() == database and schema in (None, row["table_schema"].lower())
    )
