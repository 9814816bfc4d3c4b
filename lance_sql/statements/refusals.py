"""Refuses, with a remedy, statements that would succeed without effect, or with an unexpected one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.errors import SqlError
from lance_sql.searches.prepared import prepared_by
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find_named
from lance_sql.text.calls import dotted_name
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token

if TYPE_CHECKING:
    from sqlglot import exp

#: Parts of a dataset that can be altered.
ALTERATIONS = "You can add, drop and rename columns, and change their type, default and NOT NULL"

_CHANGES = ("DELETE", "INSERT", "MERGE", "TRUNCATE", "UPDATE")


def refuse_by_words(session: Session, tokens: Sequence[Token]) -> None:
    """Refuse statements by their first words, if they refer to a dataset."""
    words = [token.upper for token in tokens]
    match words:
        case ["ANALYZE", *_] | ["VACUUM", "ANALYZE", *_] if is_dataset(session, tokens[-1].value):
            raise UnsupportedFeatureError(
                f"ANALYZE only works on tables of the SQL engine; {tokens[-1].value} is a dataset",
                remedy="Statistics of datasets are collected on write; use OPTIMIZE to update indices",
            )
        case ["ALTER", "VIEW", *_] | ["COMMENT", "ON", "VIEW", *_]:
            name = _named(tokens[2 if words[0] == "ALTER" else 3 :])
            if is_dataset(session, name):
                raise SqlError(
                    f"{name} is a dataset, not a view",
                    remedy="Write ALTER TABLE" if words[0] == "ALTER" else "Write COMMENT ON TABLE",
                )
            if words[-3:-1] == ["RENAME", "TO"] and is_dataset(session, tokens[-1].value):
                raise SqlError(
                    f"{tokens[-1].value} is a dataset, and a view with the same name would hide it",
                    remedy="Choose another name",
                )
        case ["CREATE", "TABLE", *_, "(", "LIKE", _, ")"]:
            raise UnsupportedFeatureError(
                "LIKE does not describe a dataset",
                remedy=f"Write CREATE TABLE {tokens[2].value} AS FROM {tokens[-2].value} WITH NO DATA",
            )
        case ["EXPLAIN", *_]:
            place = _changed_after(session, tokens, 1)
            if place is not None:
                raise UnsupportedFeatureError(
                    f"EXPLAIN only supports queries, not {tokens[place].upper} on a dataset",
                    remedy="Use EXPLAIN on a SELECT of the affected rows",
                )


def prepared_change(session: Session, statement: Statement) -> Statement | None:
    """The change of a dataset that ``PREPARE name AS ...`` prepares; None for other statements."""
    prepared = prepared_by(statement)
    if prepared is None or prepared.tokens[0].upper not in ("WITH", *_CHANGES):
        return None
    return None if _changed_after(session, prepared.tokens, 0) is None else prepared


def _changed_after(session: Session, tokens: Sequence[Token], start: int) -> int | None:
    """Where a statement that changes a dataset begins among the tokens, maybe after common tables."""
    depth = 0
    for place, token in enumerate(tokens[start:], start):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind == "word" and token.upper in ("SELECT", *_CHANGES):
            is_change = token.upper != "SELECT" and _target(session, tokens[place:])
            return place if is_change else None
    return None


def refuse_changes_within(session: Session, tokens: Sequence[Token]) -> None:
    """``WITH x AS (INSERT INTO t ... RETURNING ...) SELECT``: a change of a dataset within a query."""
    for place, (before, token) in enumerate(itertools.pairwise(tokens), 1):
        if before.text == "(" and token.upper in _CHANGES and _target(session, tokens[place:]):
            raise UnsupportedFeatureError(
                f"A query cannot contain {token.upper} on a dataset",
                remedy=f"Run the {token.upper} ... RETURNING first, and query its result",
            )


def _target(session: Session, tokens: Sequence[Token]) -> bool:
    """Whether a statement that changes something changes a dataset."""
    skipped = (*_CHANGES, "INTO", "FROM", "TABLE", "OR", "REPLACE", "IGNORE")
    place = next((place for place, token in enumerate(tokens) if token.upper not in skipped), len(tokens))
    # Without a list of columns, which would make it a call.
    name = [*itertools.takewhile(lambda token: token.text != "(", tokens[place:])]
    parts = dotted_name(name, 0) if name else []
    if len(parts) > 1:
        return find_named(session.catalog, ".".join(parts), quoted=False, must_exist=False) is not None
    return parts != [] and is_dataset(session, parts[0])


def _named(tokens: Sequence[Token]) -> str:
    """The name at the start of the rest of a statement, after IF EXISTS."""
    name = next((token for token in tokens if token.upper not in ("IF", "EXISTS")), None)
    return "" if name is None else name.value


def refuse_unparsed_change(session: Session, statement: Statement) -> None:
    """Refuse changes of a dataset that only DuckDB understands, for which it is a view.

    If DuckDB does not understand them either, the engine's error message is better.
    """
    import duckdb

    if not _target(session, statement.tokens):
        return
    try:
        duckdb.extract_statements(statement.original)
    except duckdb.Error:
        return
    raise UnsupportedFeatureError(
        f"Unsupported {statement.tokens[0].upper}: {statement.original.strip()}",
        remedy="Write queries in it as SELECT ... FROM (query)",
    )


def refuse_quoted_texts(session: Session, tokens: Sequence[Token]) -> None:
    """``DELETE FROM t WHERE name = "x"`` in a dialect in which that is a text: changes read it as a name."""
    if session.capabilities.computes_statements:
        return
    quoted = next((token for token in tokens if token.kind == "quoted" and token.text[:1] == '"'), None)
    if quoted is not None and session.quotes_are_texts():
        raise UnsupportedFeatureError(
            f"{quoted.text} is a text in this dialect, and a name in statements that change datasets",
            remedy=f"Write the name `{quoted.value}`, or the text '{quoted.value}'",
        )


def refuse_select_into(tokens: Sequence[Token]) -> None:
    """``SELECT ... INTO t``: a table in memory, although a dataset could be meant."""
    if any(token.upper == "INTO" for token in tokens):
        raise UnsupportedFeatureError(
            "SELECT INTO is not supported", remedy="Write CREATE TABLE t AS SELECT ..."
        )


def refuse_unknown_alteration(session: Session, tokens: Sequence[Token]) -> None:
    """``ALTER TABLE t ...`` with a change that only tables of the engine support."""
    if _named(tokens[1:2]).upper() == "TABLE" and is_dataset(session, _named(tokens[2:])):
        raise UnsupportedFeatureError(f"Unsupported ALTER TABLE: {_words(tokens)}", remedy=ALTERATIONS)


def _words(tokens: Sequence[Token]) -> str:
    return " ".join(token.value for token in tokens)


def is_dataset(session: Session, name: str) -> bool:
    """Whether a name refers to a dataset in this session."""
    known = {known.lower() for known in session.catalog.names()}
    return name.lower() in known or name.rstrip("/").endswith(".lance")


def refuse_taken_name(session: Session, table: exp.Expression, what: str) -> None:
    """Refuse a table or view of the engine with the same name as a dataset."""
    from sqlglot import exp

    name = table.find(exp.Table)
    if name is not None and name.args.get("db") is None and is_dataset(session, name.name):
        raise SqlError(
            f"{name.name} is a dataset, and a {what} with the same name would hide it from some statements",
            remedy="Choose another name, or drop the dataset first with DROP TABLE",
        )


def refuse_dropping_as_view(session: Session, statement: exp.Drop) -> None:
    """``DROP VIEW t`` of a dataset, which is a view to the engine."""
    for table in statement.args["tables"]:
        if table.args.get("db") is None and is_dataset(session, table.name):
            raise SqlError(
                f"{table.name} is a dataset, not a view", remedy=f"Use DROP TABLE {table.name} to remove it"
            )


def generated_columns() -> UnsupportedFeatureError:
    """The error for columns whose values the dataset would have to compute."""
    return UnsupportedFeatureError(
        "Generated columns are not supported for datasets",
        remedy="Create a view, or provide the value in each INSERT",
    )


def refuse_hidden_target(statement: exp.Expression) -> None:
    """``WITH t AS (...) DELETE FROM t``: the table to change is a query, as in DuckDB."""
    from sqlglot import exp

    before, table = statement.args.get("with_"), statement.this
    queries = [] if before is None else [query.alias.lower() for query in before.expressions]
    if isinstance(table, exp.Table) and table.args.get("db") is None and table.name.lower() in queries:
        raise SqlError(
            f"{table.name} is a query of the WITH clause, not a table", remedy="Give the query another name"
        )


def refuse_definitions(statement: exp.Create) -> None:
    """Refuse parts of a column definition that datasets do not implement."""
    from sqlglot import exp

    nodes = {type(node): node for node in statement.this.walk()}
    identity = nodes.get(exp.GeneratedAsIdentityColumnConstraint)
    # The parser reads GENERATED ALWAYS AS (expression) as an identity.
    computed = identity is not None and identity.args.get("expression") is not None
    if computed or exp.ComputedColumnConstraint in nodes or exp.GeneratedAsRowColumnConstraint in nodes:
        raise generated_columns()
    if identity is not None or exp.AutoIncrementColumnConstraint in nodes:
        raise UnsupportedFeatureError(
            "Identity columns are not supported for datasets",
            remedy="Use a SEQUENCE: INSERT INTO t VALUES (nextval('s'), ...)",
        )
    if exp.CollateColumnConstraint in nodes:
        raise UnsupportedFeatureError(
            "Datasets cannot keep a COLLATE of a column", remedy="Write COLLATE in ORDER BY and in conditions"
        )
    if exp.Reference in nodes or exp.ForeignKey in nodes:
        raise UnsupportedFeatureError(
            "Datasets cannot enforce FOREIGN KEY",
            remedy="Remove the constraint, and use MERGE INTO to keep keys unique",
        )
