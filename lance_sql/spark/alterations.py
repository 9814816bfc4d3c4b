"""ALTER TABLE of a table of a catalog; TableChanges.java sends the changes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lance_engine.errors import UnsupportedFeatureError
from pyspark.sql.types import StructType

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.defaults import default_of
from lance_sql.catalog.metadata import COMMENT
from lance_sql.catalog.values import compile_value
from lance_sql.spark.defaults import default_for_sessions, with_defaults
from lance_sql.spark.table_properties import property_change
from lance_sql.spark.types import check_storable, stored_schema, with_comments
from lance_sql.spark.versions import arrow_schema
from lance_sql.statements.alter import set_default, with_columns
from lance_sql.types.casts import stored_value


def alter(dataset: SqlDataset, changes: Sequence[Mapping[str, Any]]) -> SqlDataset:
    """One commit per kind of change: no column of several is added or dropped if one of them cannot be."""
    for kind, alike in itertools.groupby(changes, lambda change: str(change["do"])):
        dataset = _changed(dataset, kind, list(alike))
    return dataset


def _changed(dataset: SqlDataset, kind: str, changes: list[Mapping[str, Any]]) -> SqlDataset:
    if kind == "add":
        fields = [StructType.fromJson(json.loads(change["schema"])).fields[0] for change in changes]
        return _with_new_columns(dataset, StructType(fields))
    if kind == "drop":
        known = [
            change for change in changes if not change["if_exists"] or _column(change) in dataset.schema.names
        ]
        return dataset.drop_columns([_column(change) for change in known]) if known else dataset
    if kind == "property":
        for apply in [property_change(dataset, change["key"], change["value"]) for change in changes]:
            dataset = apply(dataset)
        return dataset
    for change in changes:
        dataset = _altered(dataset, _column(change), change)
    return dataset


def _column(change: Mapping[str, Any]) -> str:
    return ".".join(change["column"])


def _with_new_columns(dataset: SqlDataset, added: StructType) -> SqlDataset:
    """The rows that exist get the default, as in sessions."""
    check_storable(added)
    schema = with_defaults(with_comments(stored_schema(added), added), added)
    defaults = {field.name: default_of(field) for field in schema}
    values = {
        name: compile_value(stored_value(default, schema.field(name)), dataset.storage_schema)
        for name, default in defaults.items()
        if default is not None
    }
    return with_columns(dataset, schema, values)


def _altered(dataset: SqlDataset, column: str, change: Mapping[str, Any]) -> SqlDataset:
    match change["do"]:
        case "rename":
            return dataset.rename_column(column, change["name"])
        case "type":
            wanted = StructType.fromJson(json.loads(change["schema"]))
            check_storable(wanted)
            return dataset.alter_column(column, type=arrow_schema(wanted).field(0).type)
        case "comment":
            return dataset.update_schema_metadata({COMMENT: change["comment"]}, column=column)
        case "nullable":
            return dataset.alter_column(column, nullable=change["nullable"])
        case "default":
            text = change["default"]
            kind = dataset.schema.field(column).type
            return set_default(dataset, column, default_for_sessions(text, column, kind) if text else None)
        case other:
            raise UnsupportedFeatureError(f"Unsupported change to a table: {other}", path=dataset.uri)
