"""ALTER TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.errors import (
    ColumnNotFoundError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.operations import Values, alter_column

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.defaults import DEFAULT_KEY, default_of, with_default
from lance_sql.catalog.values import compile_value
from lance_sql.errors import SqlError
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.fitting import column_name
from lance_sql.statements.nested_fields import field_path, refuse_known_field, with_field
from lance_sql.statements.outcome import done
from lance_sql.statements.refusals import ALTERATIONS
from lance_sql.statements.session import Session
from lance_sql.statements.targets import dotted, find
from lance_sql.statements.types import declared_schema
from lance_sql.syntax.source import as_written
from lance_sql.text.tokens import quote
from lance_sql.types.casts import stored_value
from lance_sql.types.declared import has_wide_decimals
from lance_sql.types.duckdb_names import duckdb_types
from lance_sql.types.stored import in_type

if TYPE_CHECKING:
    from sqlglot import exp

_ONE_AT_A_TIME = "Use one ALTER TABLE statement for each change"


def alter_table(session: Session, statement: exp.Alter) -> pa.Table | None:
    """``ALTER TABLE t ADD | DROP | RENAME | ALTER COLUMN ...`` and ``RENAME TO``; one commit each."""
    from sqlglot import exp

    dataset = find(session.catalog, statement.this)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    actions = [_with_column(action) for action in statement.args["actions"]]
    first = actions[0]
    if len({type(action) for action in actions}) > 1:
        raise UnsupportedFeatureError("These changes cannot be combined in one commit", remedy=_ONE_AT_A_TIME)
    if isinstance(first, exp.ColumnDef):
        changed = _add(session, dataset, actions)
    elif isinstance(first, exp.Drop):
        changed = _drop(dataset, actions)
    elif len(actions) > 1:
        raise UnsupportedFeatureError("These changes cannot be combined in one commit", remedy=_ONE_AT_A_TIME)
    elif isinstance(first, exp.AlterRename):
        return _rename(session, dataset, statement, first)
    elif isinstance(first, exp.RenameColumn):
        changed = _rename_column(dataset, first.this.name, first.args["to"].name)
    elif isinstance(first, exp.AlterColumn):
        changed = _alter(session, dataset, first)
    else:
        raise UnsupportedFeatureError(
            f"Unsupported ALTER TABLE: {as_written(first)}",
            remedy=ALTERATIONS,
        )
    session.catalog.renew(changed)
    return done()


def _with_column(action: exp.Expression) -> exp.Expression:
    """``DROP x`` as the parser expects it, with COLUMN."""
    from sqlglot import errors, exp, parse_one

    text = str(action.expression)
    if not isinstance(action, exp.Command) or action.this != "DROP" or "," in text:
        return action
    try:
        tree = parse_one(f"ALTER TABLE t DROP COLUMN {text}", dialect="duckdb")
    except errors.SqlglotError:
        return action
    return tree.args["actions"][0]


def _refuse_known(dataset: SqlDataset, name: str, but: str = "") -> None:
    """Refuse a name that differs from another only in case: the engine could not distinguish them."""
    known = next((one for one in dataset.schema.names if one.lower() == name.lower() and one != but), None)
    if known is not None:
        raise SchemaMismatchError(
            f"Column {known!r} already exists, and names are not case sensitive",
            column=known,
            remedy="Choose another name",
        )


def _rename(session: Session, dataset: SqlDataset, statement: exp.Alter, action: exp.AlterRename) -> pa.Table:
    others = statement.args.get("options") or []
    if others:  # RENAME a TO b is parsed as a new name for the table with an option
        session.catalog.renew(_rename_column(dataset, action.this.name, others[0].this.name))
        return done()
    session.catalog.require_removable(dataset, dotted(statement.this))
    name = action.this.name
    kind = session.catalog.attached.hidden(name)
    if kind is not None:
        raise SqlError(
            f"{name} is a {kind} of the SQL engine, and a dataset with the same name would hide it",
            remedy=f"Choose another name, or drop that {kind} first",
        )
    session.catalog.rename(dataset, name if name.endswith(".lance") else f"{name}.lance")
    return done()


def _rename_column(dataset: SqlDataset, name: str, new: str) -> SqlDataset:
    path = field_path(dataset.storage_schema, name)
    if "." not in path:
        _refuse_known(dataset, new, path)
    else:
        refuse_known_field(dataset.storage_schema, name, new)
    return dataset.rename_column(path, new)


def _add_field(session: Session, dataset: SqlDataset, definition: exp.ColumnDef) -> SqlDataset:
    """``ADD COLUMN s.x type``: the column gets a type with the field, which is NULL in each value."""
    from sqlglot import exp

    *parents, name = definition.name.split(".")
    if definition.find(
        exp.DefaultColumnConstraint, exp.ComputedColumnConstraint, exp.NotNullColumnConstraint
    ):
        raise UnsupportedFeatureError(
            "A field that is added to a struct is NULL in all rows, and has no default",
            column=definition.name,
            remedy="Add it without one, then UPDATE the column",
        )
    schema = dataset.storage_schema
    top, *path = parents
    column = schema.field(column_name(schema, top))
    try:
        known = field_path(schema, definition.name)
    except ColumnNotFoundError:
        known = ""
    if known:
        if definition.args.get("exists"):
            return dataset
        raise SchemaMismatchError(
            f"Column '{known}' already exists", column=known, remedy="Choose another name"
        )
    new = declared_schema(session, f"{quote(name)} {as_written(definition.args['kind'])}").field(0)
    changed = with_field(column, path, new, definition.name)
    return _computed(session, dataset, column.name, changed, quote(column.name))


def _add(session: Session, dataset: SqlDataset, definitions: list[exp.ColumnDef]) -> SqlDataset:
    from sqlglot import exp

    fields: list[pa.Field] = []
    values: dict[str, Values] = {}
    known = {name.lower() for name in dataset.schema.names}
    if "." in definitions[0].name:
        if len(definitions) > 1:
            raise UnsupportedFeatureError(
                "These changes cannot be combined in one commit", remedy=_ONE_AT_A_TIME
            )
        return _add_field(session, dataset, definitions[0])
    parts = (exp.PrimaryKeyColumnConstraint, exp.UniqueColumnConstraint, exp.CheckColumnConstraint)
    for definition in definitions:
        if definition.args.get("exists") and definition.name.lower() in known:
            continue
        _refuse_known(dataset, definition.name)
        computed = definition.find(exp.ComputedColumnConstraint)
        if definition.find(exp.GeneratedAsIdentityColumnConstraint):  # GENERATED ALWAYS AS (...)
            raise UnsupportedFeatureError(
                "Generated columns are not supported for datasets",
                column=definition.name,
                remedy="Write ADD COLUMN c type AS (expression), which computes the values of existing rows",
            )
        if computed is None:  # a default over columns only computes the values of the rows that exist
            default_value = definition.find(exp.DefaultColumnConstraint)
            if (
                default_value is not None
                and default_value.find(exp.Column)
                and not default_value.find(exp.Query)
            ):
                computed = default_value
        kind = definition.args.get("kind")
        if computed is None:
            declaration = as_written(definition)
        else:
            declaration = f"{quote(definition.name)} {as_written(kind) if kind is not None else ''}"
        field = declared_schema(session, declaration).field(0)
        if definition.find(*parts) is not None:
            raise UnsupportedFeatureError(
                "A new column cannot have a constraint",
                column=field.name,
                remedy="Add the column, then the constraint: ALTER TABLE t ADD UNIQUE (...)",
            )
        if not field.nullable:
            raise UnsupportedFeatureError(
                "A new column must be nullable",
                column=field.name,
                remedy="Add it with a DEFAULT, then ALTER COLUMN ... SET NOT NULL",
            )
        default = default_of(field) or "NULL"
        expression = as_written(computed.this) if computed is not None else default
        if expression.upper() != "NULL":
            values[field.name] = _values(session, dataset, stored_value(expression, field))
        fields.append(field)
    if not fields:
        return dataset
    return with_columns(dataset, pa.schema(fields), values)


def with_columns(dataset: SqlDataset, schema: pa.Schema, values: Mapping[str, Values]) -> SqlDataset:
    """Add the columns of `schema`, in one commit, with these values or null in the rows that exist."""
    if not values:
        return dataset.add_columns(schema)
    needed = [name for name in dataset.schema.names if any(name in columns for columns, _ in values.values())]

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            in_type(values[field.name][1](batch), field.type)
            if field.name in values
            else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return dataset.add_columns(compute, read=needed)


def _drop(dataset: SqlDataset, actions: list[exp.Drop]) -> SqlDataset:
    names = []
    for action in actions:
        if action.args.get("kind") != "COLUMN":
            raise UnsupportedFeatureError(
                f"Unsupported ALTER TABLE: {as_written(action)}", remedy=ALTERATIONS
            )
        for column in action.args["tables"]:
            try:
                name = field_path(dataset.storage_schema, column.name)
            except ColumnNotFoundError:
                if action.args.get("exists"):
                    continue
                raise
            names.append(name)
    return dataset.drop_columns(names) if names else dataset


def _values(session: Session, dataset: SqlDataset, text: str) -> Values:
    """The value of an expression over the columns of a dataset, computed by DuckDB."""
    zone = session.computing().select("SELECT current_setting('TimeZone') AS zone").arrow()
    return compile_value(text, dataset.storage_schema, time_zone=zone.column(0)[0].as_py())


def _with_type(session: Session, dataset: SqlDataset, name: str, action: exp.AlterColumn) -> SqlDataset:
    """``ALTER COLUMN ... TYPE kind [USING expression]``: casts follow DuckDB's rules, not Arrow's."""
    field = declared_schema(session, f'"x" {as_written(action.args["dtype"])}').field(0)
    old, new = duckdb_types(pa.schema([dataset.storage_schema.field(name), field]))
    using = action.args.get("using") or None
    if using is None and old == new:
        return dataset.alter_column(name, type=dataset.storage_schema.field(name).type)
    if using is None and has_wide_decimals(dataset.storage_schema.field(name).type):
        raise UnsupportedTypeError(
            f"DuckDB computes with DOUBLE in place of {dataset.storage_schema.field(name).type}, which loses "
            "digits",
            column=name,
            remedy="Add a column with Dataset.add_columns in Python, or accept that with USING "
            + quote(name),
        )
    value = quote(name) if using is None else as_written(using)
    return _computed(session, dataset, name, field, value)


def _computed(session: Session, dataset: SqlDataset, name: str, field: pa.Field, value: str) -> SqlDataset:
    """The column `name` with the type of `field`, and the values of an expression that DuckDB computes."""
    needed, compute = _values(session, dataset, stored_value(value, field))
    return type(dataset)(
        alter_column(
            dataset.snapshot,
            name,
            type=field,
            values=(needed, lambda batch: in_type(compute(batch), field.type)),
        )
    )


def _alter(session: Session, dataset: SqlDataset, action: exp.AlterColumn) -> SqlDataset:
    name = field_path(dataset.storage_schema, action.this.name)
    if "." in name:
        raise UnsupportedFeatureError(
            "ALTER COLUMN changes whole columns, not fields of them",
            column=name,
            remedy=f"Write ALTER COLUMN {name.partition('.')[0]} TYPE ... for the whole column",
        )
    options: dict[str, Any] = action.args
    if options.get("dtype"):
        return _with_type(session, dataset, name, action)
    if options.get("allow_null") is not None:
        return dataset.alter_column(name, nullable=bool(options["allow_null"]))
    default = options.get("default")
    return set_default(dataset, name, as_written(default) if default else None)


def set_default(dataset: SqlDataset, name: str, text: str | None) -> SqlDataset:
    """Give a column another default, or none."""
    metadata = with_default(dataset.storage_schema.field(name), text).metadata or {}
    if text is not None:  # reject values of another type now, not at the next INSERT
        compile_value(stored_value(text, dataset.storage_schema.field(name)), dataset.storage_schema)
    value = metadata.get(DEFAULT_KEY)
    entry = {DEFAULT_KEY.decode(): None if value is None else value.decode()}
    return dataset.update_schema_metadata(entry, column=name)
