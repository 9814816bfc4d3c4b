"""What the catalog in the JVM asks for: one command, as CatalogCalls.java writes it, one answer.

An answer is metadata of a schema: that of the table, or of one field where there is no table.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from lance_engine.errors import (
    DatasetExistsError,
    DatasetNotFoundError,
    InvalidFilterError,
    UnsupportedFeatureError,
)
from lance_engine.operations.whole import drop_dataset, rename_dataset
from lance_engine.write.dataset import write_dataset
from pyspark.sql.types import NullType, StructField, StructType

from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.metadata import metadata_table
from lance_sql.spark.facts import KEY, with_facts
from lance_sql.spark.options import Options
from lance_sql.spark.procedures import call, table_name
from lance_sql.spark.pushed import row_filter
from lance_sql.spark.reader import schema_of
from lance_sql.spark.types import check_storable, spark_schema, stored_schema
from lance_sql.spark.versions import arrow_schema
from lance_sql.text.metadata_tables import METADATA_TABLES

_SUFFIX: Final = ".lance"
_MISSING: Final = {"missing": True}
_EXISTS: Final = {"exists": True}
# Properties of a new table that begin so are options of writing.
_SETTING: Final = "lance."
# Properties that Spark adds to every table that it creates.
_OF_SPARK: Final = frozenset({"owner", "provider", "external", "is_managed_location", "location"})


def run(options: Options) -> StructType:
    """Do what the option ``catalog_command`` says, below the directory ``path``."""
    command = json.loads(options.catalog_command or "{}")
    if command["do"] == "load":
        return _load(options, command)
    answer = _COMMANDS[command["do"]](options, command)
    return _answer(answer or {})


def _answer(answer: Mapping[str, Any], schema: StructType | None = None) -> StructType:
    """A schema that carries an answer, besides what it says of a table."""
    if schema is None or not schema.fields:
        schema = StructType([StructField("answer", NullType())])
    first = schema.fields[0]
    told = {**json.loads((first.metadata or {}).get(KEY, "{}")), **answer}
    metadata = {**(first.metadata or {}), KEY: json.dumps(told)}
    field = StructField(first.name, first.dataType, first.nullable, metadata)
    return StructType([field, *schema.fields[1:]])


def _folder(options: Options, namespace: list[str]) -> str:
    for part in namespace:
        if not part or part in (".", "..") or {"/", "\\", "\0"} & set(part) or part.endswith(_SUFFIX):
            raise UnsupportedFeatureError(f"{part!r} cannot be the name of a namespace", path=options.path)
    return "/".join([options.path.rstrip("/"), *namespace])


def _path(options: Options, command: Mapping[str, Any]) -> str:
    name = command["table"]
    if not name or name in (".", "..") or {"/", "\\", "\0"} & set(name):
        raise UnsupportedFeatureError(f"{name!r} cannot be the name of a table", path=options.path)
    return f"{_folder(options, command['namespace'])}/{name.removesuffix(_SUFFIX)}{_SUFFIX}"


def _at(options: Options, path: str) -> Options:
    return dataclasses.replace(options, path=path, catalog_command=None)


def _open(options: Options, path: str) -> SqlDataset | None:
    try:
        return SqlDataset.open(path, storage_options=options.storage_options)
    except DatasetNotFoundError:
        return None


def _load(options: Options, command: Mapping[str, Any]) -> StructType:
    """A table at a version, or one of its metadata tables, which stand behind its name."""
    path, part = _path(options, command), None
    chosen: dict[str, Any] = {}
    if "version" in command:
        version = command["version"]
        chosen = {"version": int(version)} if version.isdecimal() else {"tag": version}
    elif "as_of" in command:
        chosen = {"as_of": command["as_of"].replace("Z", "+00:00")}
    namespace = command["namespace"]
    if namespace and command["table"] in METADATA_TABLES and _open(options, path) is None:
        path, part = _path(options, {"namespace": namespace[:-1], "table": namespace[-1]}), command["table"]
    texts = {name: str(value) for name, value in {"path": path, "part": part, **chosen}.items() if value}
    parsed = Options.parse(texts)
    read = dataclasses.replace(
        _at(options, path), version=parsed.version, tag=parsed.tag, as_of=parsed.as_of, part=part
    )
    try:
        dataset = read.open()
    except DatasetNotFoundError:
        return _answer(_MISSING)
    if part is not None:
        return _answer({"options": texts}, spark_schema(metadata_table(dataset, part).schema))
    answer = {"options": texts, "properties": dict(dataset.snapshot.manifest.config)}
    return _answer(answer, with_facts(schema_of(read, dataset), dataset))


def _tables(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any]:
    folder = _folder(options, command["namespace"])
    return {"names": list(Catalog(folder, options.storage_options).tables())}


def _namespaces(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any]:
    folder = _folder(options, command["namespace"])
    if "://" in folder:
        return {"names": []}  # on object stores any prefix is a namespace
    if not os.path.isdir(folder):
        return _MISSING
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith((".", "_"))]
    return {"names": sorted(name for name in names if not name.endswith(_SUFFIX))}


def _create_namespace(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    folder = _folder(options, command["namespace"])
    if "://" in folder:
        return None
    if os.path.isdir(folder):
        return _EXISTS
    os.makedirs(folder)
    return None


def _drop_namespace(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    folder = _folder(options, command["namespace"])
    if "://" in folder:
        raise UnsupportedFeatureError(
            "On object stores, an empty namespace does not exist: drop its last table instead", path=folder
        )
    if os.listdir(folder):
        return {"filled": True}
    os.rmdir(folder)
    return None


def _create(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    schema = StructType.fromJson(json.loads(command["schema"]))
    check_storable(schema)
    path = _path(options, command)
    given = {key: value for key, value in command["properties"].items() if key not in _OF_SPARK}
    settings = {key: value for key, value in given.items() if key.startswith(_SETTING)}
    properties = {key: value for key, value in given.items() if key not in settings}
    parsed = Options.parse({**{key.removeprefix(_SETTING): settings[key] for key in settings}, "path": path})
    try:
        created = write_dataset(
            stored_schema(schema).empty_table(),
            path,
            mode="create",
            data_storage_version=parsed.data_storage_version,
            stable_row_ids=bool(parsed.stable_row_ids),
            storage_options=options.storage_options,
        )
    except DatasetExistsError:
        return _EXISTS
    if properties:
        SqlDataset.open(created.uri, storage_options=options.storage_options).update_config(properties)
    return None


def _drop(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    dataset = _open(options, _path(options, command))
    if dataset is None:
        return _MISSING
    drop_dataset(dataset.snapshot)
    return None


def _rename(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if command["namespace"] != command["to"]["namespace"]:
        raise UnsupportedFeatureError(
            "A table cannot be moved to another namespace by renaming", path=options.path
        )
    dataset = _open(options, _path(options, command))
    if dataset is None:
        return _MISSING
    try:
        rename_dataset(dataset.snapshot, _path(options, command["to"]).rpartition("/")[2])
    except DatasetExistsError:
        return _EXISTS
    return None


def _alter(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """One commit for each change."""
    dataset = _open(options, _path(options, command))
    if dataset is None:
        return _MISSING
    for change in command["changes"]:
        dataset = _changed(dataset, change)
    return None


def _changed(dataset: SqlDataset, change: Mapping[str, Any]) -> SqlDataset:
    column = ".".join(change.get("column", ()))
    match change["do"]:
        case "add":
            return dataset.add_columns(stored_schema(StructType.fromJson(json.loads(change["schema"]))))
        case "drop":
            if change["if_exists"] and column not in dataset.schema.names:
                return dataset
            return dataset.drop_columns([column])
        case "rename":
            return dataset.rename_column(column, change["name"])
        case "type":
            kind = arrow_schema(StructType.fromJson(json.loads(change["schema"]))).field(0).type
            return dataset.alter_column(column, type=kind)
        case "nullable":
            return dataset.alter_column(column, nullable=change["nullable"])
        case "property":
            return dataset.update_config({change["key"]: change["value"]})
        case other:
            raise UnsupportedFeatureError(f"Unsupported change to a table: {other}", path=dataset.uri)


def _delete(options: Options, command: Mapping[str, Any]) -> None:
    """Delete the rows that pass filters, or all rows without a filter."""
    dataset = _existing(options, command["path"])
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
    path = _path(options, {"namespace": namespace, "table": table})
    arguments = {name: value for name, value in command["arguments"].items() if name != "table"}
    return call(_existing(options, path), command["procedure"], arguments)


def _existing(options: Options, path: str) -> SqlDataset:
    dataset = _open(options, path)
    if dataset is None:
        raise DatasetNotFoundError("There is no such table", path=path)
    return dataset


_COMMANDS: Final[Mapping[str, Callable[[Options, Mapping[str, Any]], Mapping[str, Any] | None]]] = {
    "tables": _tables,
    "namespaces": _namespaces,
    "create_namespace": _create_namespace,
    "drop_namespace": _drop_namespace,
    "create": _create,
    "drop": _drop,
    "rename": _rename,
    "alter": _alter,
    "delete": _delete,
    "call": _call,
}
