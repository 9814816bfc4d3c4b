"""CREATE INDEX and DROP INDEX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance_engine.errors import IndexExistsError, IndexNotFoundError, LanceError, UnsupportedFeatureError

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find, find_named
from lance_sql.statements.transactions import refuse_in_transaction

if TYPE_CHECKING:
    from sqlglot import exp

#: Options, by their names in DuckDB's Lance extension.
_OTHER_NAMES: Final = {"metric_type": "metric"}


def create_index(session: Session, statement: exp.Create) -> pa.Table | None:
    """``CREATE [OR REPLACE] INDEX [IF NOT EXISTS] [name] ON t [USING kind] (column) [WITH (name = value)]``.

    USING may also follow the column. The kind is btree by default.
    Options are those of `Dataset.create_index`.
    """
    from sqlglot import exp

    index = statement.this
    dataset = find(session.catalog, index.args["table"])
    if dataset is None:
        return None
    refuse_in_transaction(session, "CREATE INDEX")
    refuse_unsupported_clauses(statement)
    parameters = index.args["params"]
    for part in parameters.args.get("columns") or ():
        if not isinstance(part.this, exp.Column | exp.Dot):
            raise UnsupportedFeatureError(
                f"Indices must be on a column, not on {part.this.sql(dialect='duckdb')}",
                remedy="Add a column with ALTER TABLE ... ADD COLUMN c type AS (expression), and index it",
            )
    columns = [
        ".".join(name.name for name in part.this.parts) for part in parameters.args.get("columns") or ()
    ]
    if statement.args.get("unique") or len(columns) != 1:
        raise UnsupportedFeatureError(
            "Indices must be on one column and cannot be UNIQUE",
            remedy="Drop UNIQUE and list exactly one column",
        )
    using = parameters.args.get("using")
    name = index.this.name if index.this is not None else None
    if statement.args.get("exists") and (name or f"{columns[0]}_idx") in _names(dataset):
        return done()
    kind = using.name.lower() if using is not None else "btree"
    replaces = bool(statement.args.get("replace"))
    options = _options(parameters.args.get("with_storage") or ())
    try:
        changed = dataset.create_index(columns[0], kind, name=name, replace=replaces, **options)
    except IndexExistsError as error:
        error.remedy = "Choose another name, or write CREATE OR REPLACE INDEX"
        raise
    except LanceError:
        raise
    except TypeError as error:  # an option that this kind does not have
        raise UnsupportedFeatureError(str(error), path=dataset.uri) from error
    session.catalog.renew(changed)
    return done()


def _options(properties: Sequence[exp.Property]) -> dict[str, Any]:
    """``WITH (num_partitions = 16, metric = 'cosine')`` as keyword arguments."""
    from sqlglot import exp

    options: dict[str, Any] = {}
    for given in properties:
        value = given.args["value"]
        if not isinstance(value, exp.Literal | exp.Boolean):
            raise UnsupportedFeatureError(
                f"The index option {given.name} must be a constant, not {value.sql(dialect='duckdb')}"
            )
        name = given.name.lower()
        options[_OTHER_NAMES.get(name, name)] = value.to_py()
    return options


def drop_index(session: Session, statement: exp.Drop) -> pa.Table | None:
    """``DROP INDEX [IF EXISTS] name [ON t]``; without ON, the only dataset of the session that has it."""
    name = statement.args["tables"][0].name
    owner = statement.args.get("cluster")
    if owner is not None:
        owner_dataset = find(session.catalog, owner.this)
        if owner_dataset is None:
            return None
        owners = [owner_dataset]
    else:
        datasets = (find_named(session.catalog, table) for table in session.catalog.names())
        owners = [dataset for dataset in datasets if dataset is not None and name in _names(dataset)]
    if statement.args.get("exists"):
        owners = [dataset for dataset in owners if name in _names(dataset)]
        if not owners:
            return done()
    if len(owners) != 1:
        what = "no dataset in this session has" if not owners else "several datasets have"
        raise IndexNotFoundError(f"{what} an index {name}", remedy=f"Write DROP INDEX {name} ON table")
    refuse_in_transaction(session, "DROP INDEX")
    session.catalog.renew(owners[0].drop_index(name))
    return done()


def _names(dataset: SqlDataset) -> list[str]:
    return list(dataset.inspect.indices().column("name").to_pylist())
