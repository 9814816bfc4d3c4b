"""CREATE INDEX and DROP INDEX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from lance_engine.errors import IndexNotFoundError, UnsupportedFeatureError

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find, find_named

if TYPE_CHECKING:
    from sqlglot import exp


def create_index(session: Session, statement: exp.Create) -> pa.Table | None:
    """``CREATE [OR REPLACE] INDEX [IF NOT EXISTS] [name] ON t [USING kind] (column)``; a btree by default."""
    index = statement.this
    dataset = find(session.catalog, index.args["table"])
    if dataset is None:
        return None
    parameters = index.args["params"]
    columns = [part.this.name for part in parameters.args.get("columns") or ()]
    if statement.args.get("unique") or len(columns) != 1:
        raise UnsupportedFeatureError(
            "an index is on one column and not unique", remedy="Leave UNIQUE out and name one column"
        )
    using = parameters.args.get("using")
    name = index.this.name if index.this is not None else None
    if statement.args.get("exists") and (name or f"{columns[0]}_idx") in _names(dataset):
        return done()
    kind = using.name.lower() if using is not None else "btree"
    changed = dataset.create_index(columns[0], kind, name=name, replace=bool(statement.args.get("replace")))
    session.catalog.renew(changed)
    return done()


def drop_index(session: Session, statement: exp.Drop) -> pa.Table | None:
    """``DROP INDEX [IF EXISTS] name [ON t]``; without ON, the one dataset of the session that has it."""
    name = statement.args["tables"][0].name
    owner = statement.args.get("cluster")
    if owner is not None:
        found = find(session.catalog, owner.this)
        if found is None:
            return None
        owners = [found]
    else:
        datasets = (find_named(session.catalog, table) for table in session.catalog.names())
        owners = [dataset for dataset in datasets if dataset is not None and name in _names(dataset)]
    if statement.args.get("exists"):
        owners = [dataset for dataset in owners if name in _names(dataset)]
        if not owners:
            return done()
    if len(owners) != 1:
        what = "no dataset of this session has" if not owners else "several datasets have"
        raise IndexNotFoundError(f"{what} an index {name}", remedy=f"Write DROP INDEX {name} ON table")
    session.catalog.renew(owners[0].drop_index(name))
    return done()


def _names(dataset: SqlDataset) -> list[str]:
    return list(dataset.inspect.indices().column("name").to_pylist())
