"""Commands of the catalog in the JVM: CatalogCalls.java sends one command and gets one response.

The response is schema metadata: of the table, or of a single field if there is no table.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from lance_engine.errors import (
    DatasetExistsError,
    DatasetNotFoundError,
    InvalidFilterError,
    UnsupportedFeatureError,
)
from lance_engine.operations import drop_dataset, rename_dataset
from lance_engine.write import write_dataset
from pyspark.sql.types import NullType, StructField, StructType

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.metadata import COMMENT, metadata_table, table_comment
from lance_sql.spark.facts import KEY, with_facts
from lance_sql.spark.job import check_stable_row_ids
from lance_sql.spark.options import OURS, Options
from lance_sql.spark.places import places
from lance_sql.spark.procedures import call, column_names, table_name
from lance_sql.spark.pushed import row_filter
from lance_sql.spark.reader import schema_of
from lance_sql.spark.search_table import AskedSearch, version_of
from lance_sql.spark.summaries import summaries
from lance_sql.spark.table_properties import FORMAT, declaration, with_property
from lance_sql.spark.types import check_storable, spark_schema, stored_schema, with_comments
from lance_sql.spark.versions import arrow_schema
from lance_sql.text.metadata_tables import METADATA_TABLES

#: Procedures whose work ViewColumns.java has tasks do.
_FROM_VIEW: Final = {"add_columns_from": "add", "update_columns_from": "update"}
_MISSING: Final = {"missing": True}
_EXISTS: Final = {"exists": True}


def run(options: Options) -> StructType:
    """Execute the option ``catalog_command`` in the directory ``path``."""
    command = json.loads(options.catalog_command or "{}")
    if command["do"] == "load":
        return _load(options, command)
    answer = _COMMANDS[command["do"]](options, command)
    return _answer(answer or {})


def _answer(answer: Mapping[str, Any], schema: StructType | None = None) -> StructType:
    """A schema that carries a response, in addition to a table's schema."""
    if schema is None or not schema.fields:
        schema = StructType([StructField("answer", NullType())])
    first = schema.fields[0]
    told = {**json.loads((first.metadata or {}).get(KEY, "{}")), **answer}
    metadata = {**(first.metadata or {}), KEY: json.dumps(told)}
    field = StructField(first.name, first.dataType, first.nullable, metadata)
    return StructType([field, *schema.fields[1:]])


def _at(options: Options, command: Mapping[str, Any]) -> Options | None:
    return places(options).find(command["namespace"], command["table"])


def _open(at: Options | None) -> SqlDataset | None:
    if at is None:
        return None
    try:
        return SqlDataset.open(at.path, storage_options=at.storage_options)
    except DatasetNotFoundError:
        return None


def _load(options: Options, command: Mapping[str, Any]) -> StructType:
    """A table at a version, or one of its metadata tables, whose name follows the table name."""
    at, part = _at(options, command), None
    chosen: dict[str, Any] = {}
    search = command.get("search")
    version = command.get("version") if search is None else version_of(search)
    if version is not None:
        chosen = {"version": int(version)} if version.isdecimal() else {"tag": version}
    elif "as_of" in command:
        chosen = {"as_of": command["as_of"].replace("Z", "+00:00")}
    namespace = command["namespace"]
    if search is None and namespace and command["table"] in METADATA_TABLES and _open(at) is None:
        at, part = places(options).find(namespace[:-1], namespace[-1]), command["table"]
    if at is None:
        return _answer(_MISSING)
    texts = _texts(options, at, **{OURS + "part": part}, **chosen)
    parsed = Options.parse(texts)
    read = dataclasses.replace(at, version=parsed.version, tag=parsed.tag, as_of=parsed.as_of, part=part)
    try:
        dataset = read.open()
    except DatasetNotFoundError:
        return _answer(_MISSING)
    if part is not None:
        return _answer({"options": texts}, spark_schema(_plain_numbers(metadata_table(dataset, part).schema)))
    if search is not None:
        found = AskedSearch(dataset, search).schema
        texts = _texts(options, at, version=dataset.version, **{OURS + "search": json.dumps(search)})
        return _answer({"options": texts}, spark_schema(found))
    properties = {**dataset.snapshot.manifest.config, "provider": FORMAT, "location": dataset.uri}
    comment = table_comment(dataset)
    if comment is not None:
        properties[COMMENT] = comment
    answer = {"options": texts, "properties": properties}
    return _answer(answer, with_facts(schema_of(read, dataset), dataset))


def _plain_numbers(schema: pa.Schema) -> pa.Schema:
    """Versions and counts as bigint: they fit, and Spark has no unsigned numbers but decimals."""
    fields = [f.with_type(pa.int64()) if pa.types.is_uint64(f.type) else f for f in schema]
    return pa.schema(fields)


def _texts(options: Options, at: Options, **more: object) -> dict[str, str]:
    """Options of a table in addition to those of its catalog."""
    texts = {name: str(value) for name, value in {"path": at.path, **more}.items() if value}
    if at.storage_options != options.storage_options and at.storage_options is not None:
        texts["storage_options"] = json.dumps(dict(at.storage_options))
    return texts


def _exists(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any]:
    """Whether this is a dataset, not a table of a directory."""
    return {"exists": options.latest() is not None}


def _tables(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"names": places(options).tables(command["namespace"])}


def _namespaces(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any]:
    names = places(options).namespaces(command["namespace"])
    return _MISSING if names is None else {"names": names}


def _create_namespace(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return None if places(options).create(command["namespace"]) else _EXISTS


def _drop_namespace(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return None if places(options).drop(command["namespace"]) else {"filled": True}


def _create(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Create a table without rows, or replace one if ``replaces``; only check that with ``only_check``.

    A checked table is then written with its rows, and `_configure` completes it.
    """
    declared = declaration(StructType.fromJson(json.loads(command["schema"])), command["properties"])
    place = _at(options, command)
    existing = _open(place)
    if existing is not None and not command["replaces"]:
        return _EXISTS
    if existing is None and command["replaces"] and command["must_exist"]:
        return _MISSING
    if existing is not None:
        check_stable_row_ids(existing.snapshot, declared.stable_row_ids)
    at = place or places(options).new(command["namespace"], command["table"])
    if command["only_check"]:
        return {"options": _texts(options, at)}
    try:
        write_dataset(
            declared.schema.empty_table(),
            at.path,
            mode="overwrite" if command["replaces"] else "create",
            data_storage_version=declared.data_storage_version,
            stable_row_ids=bool(declared.stable_row_ids),
            storage_options=at.storage_options,
        )
    except DatasetExistsError:
        return _EXISTS
    _configure(options, command)
    return None


def _configure(options: Options, command: Mapping[str, Any]) -> None:
    """Store the properties of a new table that belong to the user."""
    declared = declaration(StructType.fromJson(json.loads(command["schema"])), command["properties"])
    dataset = _existing(places(options).find(command["namespace"], command["table"]))
    if dataset.snapshot.manifest.config != declared.config:
        dataset.update_config(declared.config, replace=True)


def _drop(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    dataset = _open(_at(options, command))
    if dataset is None:
        return _MISSING
    places(options).require_removable(command["namespace"], dataset.uri)
    drop_dataset(dataset.snapshot)
    places(options).dropped(command["namespace"], command["table"])
    return None


def _rename(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if options.namespace is not None:
        raise UnsupportedFeatureError(
            "Tables of a namespace service cannot be renamed",
            path=options.path,
            remedy="Create a table of the new name from this one",
        )
    if command["namespace"] != command["to"]["namespace"]:
        raise UnsupportedFeatureError(
            "A table cannot be moved to another namespace by renaming", path=options.path
        )
    dataset = _open(_at(options, command))
    if dataset is None:
        return _MISSING
    renamed = places(options).new(command["to"]["namespace"], command["to"]["table"])
    try:
        rename_dataset(dataset.snapshot, renamed.path.rpartition("/")[2])
    except DatasetExistsError:
        return _EXISTS
    return None


def _alter(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """One commit per change."""
    dataset = _open(_at(options, command))
    if dataset is None:
        return _MISSING
    for change in command["changes"]:
        dataset = _changed(dataset, change)
    return None


def _changed(dataset: SqlDataset, change: Mapping[str, Any]) -> SqlDataset:
    column = ".".join(change.get("column", ()))
    match change["do"]:
        case "add":
            added = StructType.fromJson(json.loads(change["schema"]))
            check_storable(added)
            return dataset.add_columns(with_comments(stored_schema(added), added))
        case "drop":
            if change["if_exists"] and column not in dataset.schema.names:
                return dataset
            return dataset.drop_columns([column])
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
        case "property":
            return with_property(dataset, change["key"], change["value"])
        case other:
            raise UnsupportedFeatureError(f"Unsupported change to a table: {other}", path=dataset.uri)


def _delete(options: Options, command: Mapping[str, Any]) -> None:
    """Delete the rows that pass filters, or all rows without a filter."""
    given = command.get("storage_options")
    dataset = _existing(
        dataclasses.replace(
            options,
            path=command["path"],
            storage_options=json.loads(given) if given else options.storage_options,
        )
    )
    pushed = json.loads(command["filters"])
    if not pushed:
        dataset.truncate()
        return
    filter = row_filter(dataclasses.replace(options, pushed_filters=command["filters"]), dataset.snapshot)
    if filter is None:
        raise InvalidFilterError(f"Unsupported filters: {pushed}", path=dataset.uri)
    dataset.delete(filter)


def _call(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any]:
    *namespace, table = table_name(command["arguments"]["table"], command["catalog"])
    at = places(options).find(namespace, table)
    if at is None:
        raise DatasetNotFoundError("Table not found", path=command["arguments"]["table"])
    arguments = {name: value for name, value in command["arguments"].items() if name != "table"}
    dataset = _existing(at)
    change = _FROM_VIEW.get(command["procedure"])
    if change is None:
        return call(dataset, command["procedure"], arguments)
    names = column_names(arguments["columns"])
    chosen = {OURS + "changed_version": dataset.version, OURS + "changed_columns": change}
    asked = {"view": arguments["view"], "columns": names, "options": _texts(options, at, **chosen)}
    rows = {"columns": [{"name": "columns", "type": "STRING"}], "rows": [[", ".join(names)]]}
    return {**rows, "from_view": asked}


def _existing(at: Options | None) -> SqlDataset:
    dataset = _open(at)
    if dataset is None:
        raise DatasetNotFoundError("Table not found", path=None if at is None else at.path)
    return dataset


_COMMANDS: Final[Mapping[str, Callable[[Options, Mapping[str, Any]], Mapping[str, Any] | None]]] = {
    "exists": _exists,
    "tables": _tables,
    "namespaces": _namespaces,
    "create_namespace": _create_namespace,
    "drop_namespace": _drop_namespace,
    "create": _create,
    "configure": _configure,
    "drop": _drop,
    "rename": _rename,
    "alter": _alter,
    "delete": _delete,
    "call": _call,
    "summaries": summaries,
}
