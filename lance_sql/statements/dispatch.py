"""Which function runs a statement, by its syntax tree."""

from __future__ import annotations

import itertools
from typing import Any, Final

import pyarrow as pa
from lance_engine.base import load
from lance_engine.errors import ColumnNotFoundError, DatasetNotFoundError, LanceError

from lance_sql.engines.base import Parameters
from lance_sql.searches.parameters import parameter_places
from lance_sql.statements.nested_fields import quoted_paths
from lance_sql.statements.refusals import (
    refuse_changes_within,
    refuse_dropping_as_view,
    refuse_hidden_target,
    refuse_quoted_texts,
    refuse_taken_name,
    refuse_unknown_alteration,
    refuse_unparsed_change,
)
from lance_sql.statements.session import Rows, Session
from lance_sql.syntax.source import parse
from lance_sql.syntax.tree import quiet
from lance_sql.text.literals import literal_edits, parameter_edits
from lance_sql.text.merges import action_edits, matched_by, source_edits
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, closing

#: Queries that do not begin with SELECT, FROM or WITH.
_PIVOTS: Final = ("PIVOT", "PIVOT_WIDER", "PIVOT_LONGER", "UNPIVOT")


def change(session: Session, statement: Statement, params: Parameters) -> pa.Table | Rows | None:
    """The result of a statement that changes a dataset; None if the engine should run it."""
    refuse_changes_within(session, statement.tokens)
    refuse_quoted_texts(session, statement.tokens)
    with session.catalog.changing():
        return _parsed(session, statement, params)


def check(session: Session, statement: Statement) -> None:
    """Raise what is wrong with a change of a dataset that is prepared, without running it.

    Its parameters are NULL here. Where they make it invalid, only EXECUTE can say so.
    """
    refuse_changes_within(session, statement.tokens)
    refuse_quoted_texts(session, statement.tokens)
    names = {name for _, _, name in parameter_places(statement.tokens)}
    nulls: Parameters = dict.fromkeys(names)
    if all(name.isdecimal() for name in names):
        nulls = [None] * max(map(int, names), default=0)
    try:
        _change_rows(session, _changed(statement), statement, nulls or None, prepares=True)
    except (ColumnNotFoundError, DatasetNotFoundError):
        raise
    except LanceError:
        if not names:
            raise


def _parsed(session: Session, statement: Statement, params: Parameters) -> pa.Table | Rows | None:
    load("sqlglot")
    from sqlglot import exp

    from lance_sql.statements import alter, comments, constraints, copy, create, indices

    if statement.tokens[0].upper == "ALTER":
        altered = constraints.alter_constraints(session, statement)
        if altered is not None:
            return altered
    match tree := _changed(statement):
        case exp.Delete() | exp.Insert() | exp.Merge() | exp.Update():
            return _change_rows(session, tree, statement, params)
        case exp.Copy():
            return copy.copy(session, tree, statement, params)
        case exp.TruncateTable():
            return create.truncate(session, tree)
        case exp.Command(this="ALTER") | None if statement.tokens[0].upper == "ALTER":
            refuse_unknown_alteration(session, statement.tokens)
        case exp.Alter():
            return alter.alter_table(session, tree)
        case exp.Command() | None if statement.tokens[0].upper in ("DELETE", "INSERT", "MERGE", "UPDATE"):
            refuse_unparsed_change(session, statement)
        case exp.Command() | None if _creates_table(statement):
            create.refuse_unparsed(session, statement)
        case exp.Create(kind="TABLE"):
            return create.create_table(session, tree, params)
        case exp.Comment():
            return comments.comment(session, tree)
        case exp.Create(kind="VIEW"):
            refuse_taken_name(session, tree.this, "view")
        case exp.Drop(kind="VIEW"):
            refuse_dropping_as_view(session, tree)
        case exp.Create(kind="INDEX"):
            return indices.create_index(session, tree)
        case exp.Drop(kind="TABLE"):
            return create.drop_table(session, tree)
        case exp.Drop(kind="INDEX"):
            return indices.drop_index(session, tree)
    return None


def _change_rows(
    session: Session, tree: Any, statement: Statement, params: Parameters, *, prepares: bool = False
) -> pa.Table | Rows | None:
    """The result of INSERT, DELETE, UPDATE or MERGE, as of `change`; with `prepares`, it is only checked."""
    from sqlglot import exp

    from lance_sql.statements import changes, insert, merge

    if isinstance(tree, exp.Delete | exp.Merge | exp.Update):
        refuse_hidden_target(tree)
    match tree:
        case exp.Insert():
            return insert.insert(session, tree, params, prepares=prepares)
        case exp.Delete():
            return changes.delete(session, tree, params, prepares=prepares)
        case exp.Update():
            return changes.update(session, tree, params, prepares=prepares)
        case exp.Merge():
            return merge.merge(session, tree, params, matched_by(statement.tokens), prepares=prepares)
    return None


def _changed(statement: Statement) -> Any:
    """The syntax tree of a statement, or None as of `_tree`."""
    with quiet():
        return _tree(_without_null_comment(statement) or _with_kind_first(statement) or _numbered(statement))


def _tree(text: str) -> Any:
    """The syntax tree of a statement; None if only the engine may understand it, or reject it."""
    load("sqlglot")
    from sqlglot import errors

    try:
        return parse(text)
    except errors.SqlglotError:
        return None


def _without_null_comment(statement: Statement) -> str | None:
    """``COMMENT ON ... IS NULL`` as the parser expects it, with an empty text; None for other statements."""
    tokens = statement.tokens
    if tokens[0].upper != "COMMENT" or tokens[-1].upper != "NULL":
        return None
    return f"{statement.original[: tokens[-1].start]}''"


def _with_kind_first(statement: Statement) -> str | None:
    """``CREATE INDEX ... ON t USING kind (column)`` for ``(column) USING kind``, which does not parse."""
    tokens = statement.tokens
    if "INDEX" not in [token.upper for token in tokens[:4]]:
        return None
    start = next((place for place, token in enumerate(tokens) if token.text == "("), None)
    end = None if start is None else closing(tokens, start)
    if start is None or end is None or end + 2 >= len(tokens) or tokens[end + 1].upper != "USING":
        return None
    text = statement.original
    column = text[tokens[start].start : tokens[end].end]
    kind = text[tokens[end + 1].start : tokens[end + 2].end]
    return f"{text[: tokens[start].start]}{kind} {column}{text[tokens[end + 2].end :]}"


def _creates_table(statement: Statement) -> bool:
    words = [token.upper for token in statement.tokens]
    return words[:2] == ["CREATE", "TABLE"] or words[:4] == ["CREATE", "OR", "REPLACE", "TABLE"]


def _by_position(statement: Statement) -> list[tuple[int, int, str]]:
    """Nothing instead of ``BY POSITION``, which is what INSERT does without it."""
    return [
        (by.start, word.end, "")
        for by, word in itertools.pairwise(statement.tokens)
        if (by.upper, word.upper) == ("BY", "POSITION")
    ]


def _first_from(tokens: list[Token]) -> list[tuple[int, int, str]]:
    """``SELECT *`` for the rows of ``INSERT INTO t (FROM s)``, which the parser takes for columns."""
    first = next((place for place, token in enumerate(tokens) if token.text == "("), len(tokens))
    start = tokens[first + 1 : first + 2]
    if not start or start[0].upper != "FROM" or any(token.upper == "SELECT" for token in tokens):
        return []
    return [(start[0].start, start[0].start, "SELECT * ")]


def _values_in_brackets(tokens: list[Token]) -> list[tuple[int, int, str]]:
    """No brackets around the VALUES of ``INSERT INTO t (VALUES ...)``, which the parser takes for columns."""
    first = next((place for place, token in enumerate(tokens) if token.text == "("), len(tokens))
    if [token.upper for token in tokens[first + 1 : first + 2]] != ["VALUES"]:
        return []
    end = closing(tokens, first)
    if end is None:
        return []
    return [(tokens[place].start, tokens[place].end, " ") for place in (first, end)]


def _pivots(statement: Statement) -> list[tuple[int, int, str]]:
    """``FROM (PIVOT ...)`` for the query ``PIVOT ...``, which the parser only knows in brackets."""
    tokens = statement.tokens
    is_insert = tokens[0].upper == "INSERT"
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and place > 2 and token.kind == "word" and token.upper in _PIVOTS:
            if not is_insert and tokens[place - 1].upper != "AS":
                continue
            return [(token.start, token.start, "FROM ("), (tokens[-1].end, tokens[-1].end, ")")]
    return []


def _numbered(statement: Statement) -> str:
    """The text with ``$1``, ``$2`` ... for ``?``, because its parts will be reordered.

    BY POSITION in INSERT is removed, because the parser does not support it; actions of MERGE, literals and
    joins that it takes for something else are written in another way.
    """
    text = statement.original
    edits = [*parameter_edits(statement.tokens), *literal_edits(statement.tokens), *quoted_paths(statement)]
    if any(token.upper == "MERGE" for token in statement.tokens):
        edits += action_edits(statement.tokens)
        edits += source_edits(statement.tokens)
    elif _creates_table(statement):
        edits += _pivots(statement)
    elif statement.tokens[0].upper in ("INSERT", "WITH"):
        edits += _pivots(statement)
        edits += _by_position(statement)
        edits += _first_from(statement.tokens)
        edits += _values_in_brackets(statement.tokens)
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text
