"""EXPORT DATABASE and IMPORT DATABASE, in DuckDB's files: schema.sql, load.sql, one for each table."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.catalog.attached import SESSION, Listed
from lance_sql.catalog.definitions import create, create_indices
from lance_sql.catalog.namespaces import MAIN, join
from lance_sql.errors import SqlError
from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.text.script import split
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import as_string, quote, tokenize

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


class _Files(NamedTuple):
    """The statements of an export, and the name of the file of each table."""

    schema: str
    load: str
    data: dict[Listed, str]


def export_database(session: Session, statement: Statement) -> pa.Table | None:
    """``EXPORT DATABASE [name TO] 'folder' [(options)]``: the tables of a catalog of datasets.

    Without a name, these are the datasets of the session with what its DuckDB has; None without datasets.
    """
    text, tokens = statement.original, statement.tokens
    catalog = session.catalog
    named = [token.upper for token in tokens[3:4]] == ["TO"]
    at = 4 if named else 2
    space = tokens[2].value if named else (catalog.attached.current or (SESSION, MAIN))[0]
    tables = [listed for listed in catalog.attached.tables() if listed.catalog.lower() == space.lower()]
    if len(tokens) <= at or tokens[at].kind != "string":
        return None
    if not tables:
        if catalog.names() and not named:
            raise UnsupportedFeatureError(
                "EXPORT DATABASE does not include registered datasets",
                remedy="Export each one with COPY t TO 'file'",
            )
        return None
    folder, options = tokens[at].value, text[tokens[at].end :].strip()
    database = session.first_schema()[0]
    if not session.capabilities.computes_statements and set(session.table_names()) - set(catalog.names()):
        raise UnsupportedFeatureError(
            "EXPORT DATABASE does not include views and tables of DataFusion",
            remedy="Drop them first, or export from a session on DuckDB",
        )
    files = _described(session, tables, options)
    computing = session.computing()
    own = ["", ""]
    if not named:
        inside = computing is session
        source = f"{quote(database)} TO " if inside else ""
        computing.select(f"EXPORT DATABASE {source}{as_string(folder)} {options}").arrow()
        own = [_read(computing, folder, name) for name in _SCRIPTS]
        own[0] = _with_tables(own[0], tables)
    else:
        computing.select(f"EXPORT DATABASE temp TO {as_string(folder)} {options}").arrow()
    taken = [token.value.rpartition("/")[2] for one in split(own[1]) for token in one.tokens]
    for listed, name in files.data.items():
        if name in taken:
            raise SqlError(
                f"{listed.name} is a dataset, and also a table of the SQL engine",
                remedy="Rename or drop one of them",
            )
        source = ".".join(map(quote, listed))
        target = as_string(join(folder, name))
        computing.select(f"COPY (SELECT * FROM {source}) TO {target} {options or '(FORMAT csv)'}").arrow()
    # The views of the engine may read datasets.
    for name, ours, theirs in zip(_SCRIPTS, (files.schema, files.load), own, strict=True):
        _write(computing, folder, name, ours.replace(_HERE, join(folder, "")) + theirs)
    return done()


_SCRIPTS = ("schema.sql", "load.sql")
#: Stands for the folder in the statements.
_HERE = "lance_sql_exported/"


def _described(session: Session, tables: list[Listed], options: str) -> _Files:
    """What DuckDB exports of empty tables with the definitions of datasets."""
    import duckdb

    with tempfile.TemporaryDirectory() as place, closing(duckdb.connect()) as shadow:
        shadow.execute("SET allowed_directories = ?", [[place]])
        shadow.execute("SET enable_external_access = false")
        targets = [_create(shadow, session, listed) for listed in tables]
        folder = os.path.join(place, "exported")
        shadow.execute(f"EXPORT DATABASE memory TO {as_string(folder)} {options}")
        schema, load = (_text_of(os.path.join(folder, name)) for name in _SCRIPTS)
        data = {}
        for one in split(load):
            if not one.tokens:
                continue
            place_of = next(number for number, token in enumerate(one.tokens) if token.upper == "FROM")
            parts = [token.value for token in one.tokens[1:place_of] if token.text != "."]
            listed = tables[targets.index(parts if len(parts) > 1 else [MAIN, *parts])]
            data[listed] = os.path.basename(one.tokens[place_of + 1].value)
        schema = schema.replace("CREATE SCHEMA ", "CREATE SCHEMA IF NOT EXISTS ")
        return _Files(schema, load.replace(f"{folder}{os.sep}", _HERE), data)


def _with_tables(text: str, tables: list[Listed]) -> str:
    """The definitions of views over datasets, which the engine knows by other names."""
    names = {".".join(listed): listed for listed in tables}
    names |= {f"{listed.schema}.{listed.name}": listed for listed in tables}
    names |= {f"{listed.catalog}.{listed.name}": listed for listed in tables if listed.schema == MAIN}
    for token in reversed(tokenize(text)):
        listed = names.get(token.value) if token.kind == "quoted" else None
        if listed is not None:
            table = f"{quote(listed.schema)}.{quote(listed.name)}"
            text = f"{text[: token.start]}{table}{text[token.end :]}"
    return text


def _create(shadow: duckdb.DuckDBPyConnection, session: Session, listed: Listed) -> list[str]:
    dataset = session.catalog.listed(listed)
    assert dataset is not None
    shadow.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(listed.schema)}")
    target = f"{quote(listed.schema)}.{quote(listed.name)}"
    create(shadow, dataset, target, enforced=True)
    create_indices(shadow, dataset, target)
    return [listed.schema, listed.name]


def import_database(
    session: Session, statement: Statement, run: Callable[[Statement], None]
) -> pa.Table | None:
    """``IMPORT DATABASE 'folder'``: its tables become datasets; `run` runs a statement of the session.

    None in a session without a directory.
    """
    tokens, current = statement.tokens, session.catalog.attached.current
    if current is None or len(tokens) != 3 or tokens[2].kind != "string":
        return None
    folder = tokens[2].value
    schema, load = (_read(session.computing(), folder, name) for name in _SCRIPTS)
    for one in _within(split(schema), current[0]):
        run(one)
    for one in split(load):
        if one.tokens:
            run(_from(one, folder))
    return done()


def _within(statements: list[Statement], space: str) -> Iterator[Statement]:
    """Schemas become folders of the directory: tables in others would be the engine's."""
    for one in statements:
        if [token.upper for token in one.tokens[:2]] == ["CREATE", "SCHEMA"]:
            yield Statement(f"CREATE SCHEMA IF NOT EXISTS {quote(space)}.{quote(one.tokens[-1].value)}")
        elif one.tokens:
            yield one


def _from(one: Statement, folder: str) -> Statement:
    """``COPY t FROM 'file'`` with the file in this folder, wherever it was when it was written."""
    path = next(
        token
        for before, token in zip(one.tokens, one.tokens[1:], strict=False)
        if before.upper == "FROM" and token.kind == "string"
    )
    inside = as_string(join(folder, path.value.replace(os.sep, "/").rpartition("/")[2]))
    return Statement(f"{one.original[: path.start]}{inside}{one.original[path.end :]}")


def _read(computing: Session, folder: str, name: str) -> str:
    """The text of a file, as far as DuckDB's settings allow reading it."""
    query = f"SELECT content FROM read_text({as_string(join(folder, name))})"
    return str(computing.select(query).arrow().column(0)[0])


def _write(computing: Session, folder: str, name: str, text: str) -> None:
    target = as_string(join(folder, name))
    computing.select(f"COPY (SELECT encode({as_string(text)})) TO {target} (FORMAT blob)").arrow()


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
