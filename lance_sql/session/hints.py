"""Hints in the errors of statements: the position, and the names of existing tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lance_engine.base import nearest_name

from lance_sql.catalog.namespaces import is_remote
from lance_sql.engines.errors import point
from lance_sql.errors import SqlError, TableNotFoundError
from lance_sql.text.calls import TRAVEL_REMEDY
from lance_sql.text.kinds import WORDS, Does, changed_name, kind_of
from lance_sql.text.tokens import as_name, as_string, table_positions

if TYPE_CHECKING:
    from lance_sql.catalog.catalog import Catalog
    from lance_sql.text.statement import Statement


@contextmanager
def hints(statement: Statement, catalog: Catalog) -> Iterator[None]:
    """Add hints to errors that `statement` raises in this block."""
    try:
        yield
    except TableNotFoundError as error:
        _name_as_written(error, statement, catalog)
        _suggest_tables(error, catalog)
        raise
    except SqlError as error:
        point(error, statement.original)
        error.remedy = error.remedy or _habit(statement) or _keyword(error, statement, catalog)
        raise
    except RecursionError:
        raise SqlError(
            "the statement is nested too deeply",
            remedy="Use fewer parentheses, operators and types within one another",
        ) from None


def _habit(statement: Statement) -> str:
    """What to write instead of a clause of other engines, or an empty text."""
    for what, _, of in zip(statement.tokens, statement.tokens[1:], statement.tokens[2:], strict=False):
        if of.upper == "OF" and what.upper in ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"):
            return TRAVEL_REMEDY
    return ""


def _keyword(error: SqlError, statement: Statement, catalog: Catalog) -> str:
    """The keyword that was meant by the word before the one at which the engine stopped to read, or by it."""
    others = {*WORDS, *map(str.upper, catalog.names())} if error.unexpected else WORDS
    for place, token in enumerate(statement.tokens):
        if token.text != error.unexpected:
            continue
        for word in (*statement.tokens[max(place - 1, 0) : place], token):
            if word.kind == "word" and word.upper not in others:
                near = nearest_name(word.upper, WORDS, 0.7)
                if near:
                    return f"Did you mean {near}?"
    return ""


def _name_as_written(error: TableNotFoundError, statement: Statement, catalog: Catalog) -> None:
    """Name the table as the statement does: engines leave parts out, or add those that views got."""
    *place, name = error.name.split(".")
    tokens = statement.tokens
    written = set()
    positions = [changed_name(tokens)] if kind_of(tokens) & Does.CHANGES else []
    for position in [*positions, *table_positions(tokens)]:
        if position >= len(tokens):
            continue
        parts = [tokens[position].value]
        while [token.text for token in tokens[position + 1 : position + 2]] == ["."]:
            parts += [token.value for token in tokens[position + 2 : position + 3]]
            position += 2
        if parts[-1].lower() == name.lower():
            written.add(".".join(parts))
    if len(written) == 1:
        error.rename(written.pop())
    elif not written and place == list(catalog.attached.current or ()):
        error.rename(name)


def _suggest_tables(error: TableNotFoundError, catalog: Catalog) -> None:
    """Add the names of existing tables, and the one most similar to the missing one."""
    import glob  # only for errors

    looks_inside = catalog.may_list(error.name) and os.path.isdir(error.name)
    inside = sorted(glob.glob("*.lance", root_dir=error.name)) if looks_inside else []
    if inside:
        error.remedy = (
            f"It is a directory of datasets: {', '.join(inside[:10])}. Pass it to lance_sql.connect() or "
            f"name a dataset by its path: FROM {as_string(os.path.join(error.name, inside[0]))}"
        )
        return
    known = catalog.names()
    if not known:  # after USE of a database of the engine
        alike = [listed for listed in catalog.attached.tables() if listed.name.lower() == error.name.lower()]
        if alike:
            error.remedy = f"Did you mean {' or '.join('.'.join(listed) for listed in alike)}?"
            return
    directory = catalog.directory
    if known:
        error.remedy = f"Available tables: {', '.join(known)}"
    elif directory is not None and not is_remote(directory) and not os.path.isdir(directory):
        error.remedy = f"The directory {directory} does not exist; the first CREATE TABLE creates it"
    here = os.listdir() if catalog.may_list(os.curdir) else []
    paths = [entry for entry in here if entry.endswith(".lance")]
    choices = {path.lower().removesuffix(".lance"): f"FROM {as_string(path)}" for path in paths} | {
        name.lower(): as_name(name) for name in known
    }
    near = nearest_name(error.name.lower().removesuffix(".lance"), choices)
    if near and not error.remedy.startswith("Did you mean"):  # another session may have added it
        error.remedy = f"Did you mean {choices[near]}? {error.remedy}"
