"""COMMENT ON TABLE and COMMENT ON COLUMN: stored where DuckDB's Lance extension looks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_sql.catalog.metadata import COMMENT, with_table_comment
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.fitting import column_name
from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find
from lance_sql.statements.transactions import refuse_in_transaction

if TYPE_CHECKING:
    from sqlglot import exp


def comment(session: Session, statement: exp.Comment) -> pa.Table | None:
    """``COMMENT ON TABLE t IS 'text' | NULL`` and ``COMMENT ON COLUMN t.c IS ...``; one commit."""
    from sqlglot import exp

    named, text = statement.this, statement.expression
    value = (text.name or None) if text is not None else None
    column = None
    if statement.args.get("kind") == "COLUMN":
        column = named.name
        named = (
            exp.Table(this=named.args["table"], db=named.args.get("db"), catalog=named.args.get("catalog"))
            if named.args.get("table")
            else None
        )
    elif statement.args.get("kind") != "TABLE":
        return None
    dataset = None if named is None else find(session.catalog, named)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    if column is None:
        refuse_in_transaction(session, "COMMENT ON TABLE")  # metadata of the table is a version of its own
        changed = with_table_comment(dataset, value)
    else:
        column = column_name(dataset.storage_schema, column)
        changed = dataset.update_schema_metadata({COMMENT: value}, column=column)
    session.catalog.renew(changed)
    return done()
