"""Commands of the catalog in the JVM: CatalogCalls.java sends one command and gets one response.

The response is schema metadata: of the table, or of a single field if there is no table.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from lance_engine.errors import (
    DatasetExistsError,
    DatasetNotFoundError,
    InvalidArgumentError,
    InvalidFilterError,
    UnsupportedFeatureError,
)
from lance_engine.operations import drop_dataset, rename_dataset
from lance_engine.write import write_dataset
from pyspark.sql.types import NullType, StructField, StructType

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.metadata import COMMENT, metadata_table, table_comment
from lance_sql.errors import SqlError
from lance_sql.spark.defaults import with_stored_defaults
from lance_sql.spark.facts import KEY, with_facts
from lance_sql.spark.job import check_stable_row_ids
from lance_sql.spark.options import OURS, Options
from lance_sql.spark.places import places
from lance_sql.spark.procedures import call, column_names, table_name
from lance_sql.spark.pushed import row_filter
from lance_sql.spark.reader import schema_of
from lance_sql.spark.search_table import AskedSearch, version_of
from lance_sql.spark.summaries import summaries
from lance_sql.spark.table_properties import (
    FORMAT,
    Declaration,
    declaration,
    property_change,
    shown_properties,
)
from lance_sql.spark.types import spark_schema
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
    if search is None and command["namespace"] and _open(at) is None:
        at, part = _described(options, command), command["table"]
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
    properties = {**shown_properties(dataset), "provider": FORMAT, "location": dataset.uri}
    comment = table_comment(dataset)
    if comment is not None:
        properties[COMMENT] = comment
    answer = {"options": texts, "properties": properties}
    schema = with_stored_defaults(schema_of(read, dataset), dataset.storage_schema)
    return _answer(answer, with_facts(schema, dataset))


def _described(options: Options, command: Mapping[str, Any]) -> Options | None:
    """The table whose name is that of the namespace, in its place or in the current namespace of USE.

    SqlError if it has no metadata table of that name, and there is no such namespace; None without a table.
    """
    known = places(options)
    *parents, table = command["namespace"]
    current = [] if parents else command.get("current", [])
    found = next((at for at in (known.find(one, table) for one in (parents, current)) if _open(at)), None)
    if command["table"] in METADATA_TABLES or found is None:
        return found
    if known.namespaces(command["namespace"]) is None:
        raise SqlError(
            f"Unknown metadata table '{command['table']}' of the table '{table}'",
            remedy=f"Choose from {', '.join(METADATA_TABLES)}",
        )
    return None


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
    declared = _declared(options, command)
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


def _declared(options: Options, command: Mapping[str, Any]) -> Declaration:
    """What the statement declares. SHOW CREATE TABLE has the location, which the catalog chooses."""
    properties = dict(command["properties"])
    if "location" in properties:
        path = places(options).new(command["namespace"], command["table"]).path
        chosen = path if "://" in path else os.path.abspath(path)
        if properties["location"].removeprefix("file://").removeprefix("file:") == chosen:
            del properties["location"]
    return declaration(StructType.fromJson(json.loads(command["schema"])), properties)


def _configure(options: Options, command: Mapping[str, Any]) -> None:
    """Store the properties of a new table that belong to the user."""
    declared = _declared(options, command)
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
    from lance_sql.spark.alterations import alter  # brings DuckDB, which most workers do not need

    dataset = _open(_at(options, command))
    if dataset is None:
        return _MISSING
    alter(dataset, command["changes"])
    return None


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
    if command["procedure"] == "create_like":
        return _create_like(options, dataset, command["catalog"], **arguments)
    change = _FROM_VIEW.get(command["procedure"])
    if change is None:
        return call(dataset, command["procedure"], arguments)
    names = column_names(arguments["columns"])
    chosen = {OURS + "changed_version": dataset.version, OURS + "changed_columns": change}
    asked = {"view": arguments["view"], "columns": names, "options": _texts(options, at, **chosen)}
    rows = {"columns": [{"name": "columns", "type": "STRING"}], "rows": [[", ".join(names)]]}
    return {**rows, "from_view": asked}


def _create_like(
    options: Options,
    source: SqlDataset,
    catalog: str,
    name: str,
    if_not_exists: bool,
    properties: Mapping[str, str] | None = None,
) -> Mapping[str, Any]:
    """A table without rows, with the columns of another one: types, defaults, comments, keys and settings."""
    *namespace, table = table_name(name, catalog)
    if namespace and places(options).namespaces(namespace) is None:
        raise InvalidArgumentError(
            f"The namespace '{'.'.join(namespace)}' does not exist", remedy="Create it with CREATE NAMESPACE"
        )
    changes = [property_change(source, key, value) for key, value in (properties or {}).items()]
    exists = _open(places(options).find(namespace, table)) is not None
    if exists and not if_not_exists:
        raise DatasetExistsError(
            f"The table '{'.'.join([*namespace, table])}' already exists",
            remedy="Choose another name, or write IF NOT EXISTS",
        )
    if not exists:
        at, version = places(options).new(namespace, table), source.snapshot.manifest.storage_version
        write_dataset(
            source.storage_schema.empty_table(),
            at.path,
            mode="create",
            data_storage_version=None if version == "0.1" else version,  # which can only be read
            stable_row_ids=source.snapshot.has_stable_row_ids,
            storage_options=at.storage_options,
        )
        created = _existing(at)
        for apply in changes:
            created = apply(created)
    return {"columns": [{"name": "created", "type": "BOOLEAN"}], "rows": [[not exists]]}


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
