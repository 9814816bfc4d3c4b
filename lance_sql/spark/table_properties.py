"""What CREATE TABLE declares: columns and TBLPROPERTIES become the schema and the settings of a new dataset.

Properties are known under our names and under those of lance-spark, or belong to the user and are stored in
the configuration of the dataset. A property that we know but cannot follow is an error with the remedy.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyspark.sql.types as spark
from lance_engine.base import BLOB_ENCODING
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError
from lance_engine.write import GENERAL_SCHEMES

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.metadata import COMMENT, with_table_comment
from lance_sql.spark.defaults import with_defaults
from lance_sql.spark.option_values import flag, one_of, positive, storage_version
from lance_sql.spark.options import COMPRESSIONS, Options
from lance_sql.spark.types import check_storable, with_comments, with_fixed_sizes
from lance_sql.spark.versions import BINARY_COLLATION, arrow_schema

#: Properties of every table of Spark that need not be stored.
_OF_SPARK: Final = frozenset({"owner", "is_managed_location", "provider", "collation"})
FORMAT: Final = "lance"

_ENCODING: Final = "lance-encoding:"
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Declaration:
    """A dataset to be created: its columns and settings, and properties that belong to the user."""

    schema: pa.Schema
    data_storage_version: str | None
    stable_row_ids: bool | None
    config: Mapping[str, str]


def declaration(columns: spark.StructType, properties: Mapping[str, str]) -> Declaration:
    """Check and apply the properties of a new table; nothing is written yet."""
    check_storable(columns)
    schema = with_defaults(with_comments(arrow_schema(columns), columns), columns)
    settings: dict[str, Any] = {}
    config: dict[str, str] = {}
    for key, value in properties.items():
        of_column = _column_setting(key, schema.names)
        if of_column is not None:
            column, setting = of_column
            schema = _with_setting(schema, key, column, setting, value)
        elif key == COMMENT:
            schema = schema.with_metadata({**(schema.metadata or {}), COMMENT: value})
        elif key in _CREATION:
            name, parse = _CREATION[key]
            settings[name] = _parsed(key, value, parse)
        else:
            _refuse(key, value)
            if key not in _OF_SPARK:
                config[key] = value
    return Declaration(schema, settings.get("data_storage_version"), settings.get("stable_row_ids"), config)


def declared_in(options: Options) -> Declaration | None:
    """The declaration that comes with the rows of CREATE TABLE ... AS SELECT."""
    if options.declared is None:
        return None
    columns = spark.StructType.fromJson(json.loads(options.declared["schema"]))
    return declaration(columns, options.declared["properties"])


def shown_properties(dataset: DatasetVersion) -> dict[str, str]:
    """The properties with which CREATE TABLE declares a table like this one."""
    shown = dict(dataset.snapshot.manifest.config)
    if dataset.snapshot.has_stable_row_ids:
        shown["lance.stable_row_ids"] = "true"
    blobs = {field.name for field in dataset.snapshot.schema.fields if field.is_blob}
    for field in dataset.storage_schema:
        metadata = field.metadata or {}
        settings = {
            setting: metadata[key.encode()].decode("utf-8", "replace")
            for setting, (key, _) in _HINTS.items()
            if key.encode() in metadata
        }
        if pa.types.is_fixed_size_list(field.type):
            settings[_SIZE] = str(field.type.list_size)
        if pa.types.is_large_string(field.type):
            settings[_LARGE_STRING] = "true"
        if field.name in blobs:
            settings[_ENCODING_OF_BLOBS] = "blob"
        shown |= {f"{field.name}.{setting}": value for setting, value in settings.items()}
    return shown


def property_change(dataset: SqlDataset, key: str, value: str | None) -> Callable[[SqlDataset], SqlDataset]:
    """The checked change, one commit, that sets a property of a table, or removes it if `value` is None.

    UnsupportedFeatureError for properties that are decided when a table is created.
    """
    of_column = _column_setting(key, dataset.schema.names)
    if of_column is not None and of_column[1] in _HINTS:
        name, parse = _HINTS[of_column[1]]
        if value is not None:
            _parsed(key, value, parse)
        return lambda current: current.update_schema_metadata({name: value}, column=of_column[0])
    if of_column is not None or key in _CREATION:
        raise UnsupportedFeatureError(
            f"The table property '{key}' is decided when a table is created",
            path=dataset.uri,
            remedy="Create a new table with it, as CREATE TABLE ... AS SELECT * FROM this one",
        )
    if key == COMMENT:
        return lambda current: with_table_comment(current, value)
    if value is not None:
        _refuse(key, value)
    return lambda current: current.update_config({key: value})


def _column_setting(key: str, names: list[str]) -> tuple[str, str] | None:
    """The column and the setting of ``COLUMN.SETTING``; ColumnNotFoundError if there is no such column."""
    setting = next((name for name in (*_HINTS, *_TYPES) if key.endswith(f".{name}")), None)
    if setting is None:
        return None
    wanted = key.removesuffix(f".{setting}")
    alike = [name for name in names if name.lower() == wanted.lower()]
    column = wanted if wanted in alike else next(iter(alike), None)
    if column is None:
        raise ColumnNotFoundError(
            f"The table property '{key}' is about a column '{wanted}', which the table does not have",
            remedy=f"Choose from: {', '.join(names)}",
        )
    return column, setting


def _with_setting(schema: pa.Schema, key: str, column: str, setting: str, value: str) -> pa.Schema:
    place = schema.names.index(column)
    field = schema.field(place)
    if setting in _HINTS:
        name, parse = _HINTS[setting]
        _parsed(key, value, parse)
        return schema.set(place, field.with_metadata({**(field.metadata or {}), name: value}))
    if setting == _SIZE:
        return with_fixed_sizes(schema, {column: _parsed(key, value, positive)})
    if setting == _ENCODING_OF_BLOBS:
        _parsed(key, value, one_of("blob"))
        changed = _typed(key, field, pa.types.is_binary, "BINARY", pa.large_binary())
        return schema.set(
            place, changed.with_metadata({**(changed.metadata or {}), BLOB_ENCODING.encode(): b"true"})
        )
    if not _parsed(key, value, flag):
        return schema
    return schema.set(place, _typed(key, field, pa.types.is_string, "STRING", pa.large_string()))


def _typed(
    key: str, field: pa.Field, fits: Callable[[pa.DataType], bool], kind: str, wanted: pa.DataType
) -> pa.Field:
    if not fits(field.type):
        raise InvalidArgumentError(
            f"The table property '{key}' needs a column of type {kind}", remedy="Leave the property out"
        )
    return field.with_type(wanted)


def _refuse(key: str, value: str) -> None:
    """UnsupportedFeatureError for what would be stored and ignored."""
    for belongs, message, remedy in _REFUSED:
        if belongs(key, value):
            raise UnsupportedFeatureError(message.format(key=key, value=value), remedy=remedy)


def _parsed(key: str, value: str, parse: Callable[[str], _T]) -> _T:
    try:
        return parse(value)
    except ValueError as error:
        raise InvalidArgumentError(
            f"The table property '{key}' cannot be '{value}': {error}", remedy="Correct or leave it out"
        ) from error


def _share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise ValueError("it must be a number greater than 0 and at most 1")
    return number


def _is_option(key: str, value: str) -> bool:
    return Options.is_name(key)


#: Settings of a new dataset, by the names of their properties.
_CREATION: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "lance.stable_row_ids": ("stable_row_ids", flag),
    "enable_stable_row_ids": ("stable_row_ids", flag),
    "lance.data_storage_version": ("data_storage_version", storage_version),
    "file_format_version": ("data_storage_version", storage_version),
}
#: Encoding hints of a column: the key of the metadata of its field, and how to check the value.
_HINTS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "lance.compression": (f"{_ENCODING}compression", one_of(*COMPRESSIONS)),
    "lance.compression-level": (f"{_ENCODING}compression-level", positive),
    "lance.structural-encoding": (f"{_ENCODING}structural-encoding", one_of("miniblock", "fullzip")),
    "lance.rle-threshold": (f"{_ENCODING}rle-threshold", _share),
    "lance.bss": (f"{_ENCODING}bss", one_of("off", "on", "auto")),
    "lance.dict-divisor": (f"{_ENCODING}dict-divisor", positive),
    "lance.dict-size-ratio": (f"{_ENCODING}dict-size-ratio", _share),
    "lance.dict-values-compression": (
        f"{_ENCODING}dict-values-compression",
        one_of(*GENERAL_SCHEMES, "none"),
    ),
    "lance.dict-values-compression-level": (f"{_ENCODING}dict-values-compression-level", positive),
    "lance.minichunk-size": (f"{_ENCODING}minichunk-size", positive),
}
_SIZE: Final = "arrow.fixed-size-list.size"
_LARGE_STRING: Final = "arrow.large_var_char"
_ENCODING_OF_BLOBS: Final = "lance.encoding"
#: Settings of a column that choose its stored type.
_TYPES: Final = (_SIZE, _LARGE_STRING, _ENCODING_OF_BLOBS)

_Refusal = tuple[Callable[[str, str], bool], str, str]
_REFUSED: Final[tuple[_Refusal, ...]] = (
    (
        lambda key, value: key == "provider" and value.lower() != FORMAT,
        "A table of this catalog is stored in the format lance, not {value}",
        "Leave out USING, or write USING lance; in Python df.writeTo(table).create() or "
        'df.write.format("lance").saveAsTable(table): saveAsTable alone asks for spark.sql.sources.default. '
        "Create tables of other formats in another catalog, such as spark_catalog",
    ),
    (
        lambda key, value: key.startswith("hive."),
        "A table of this catalog is stored in the format lance: STORED AS and ROW FORMAT are not supported",
        "Leave them out",
    ),
    (
        lambda key, value: key in ("location", "external"),
        "The catalog chooses the location of its tables: LOCATION and EXTERNAL are not supported",
        'Leave it out, or save by path: df.write.format("lance").save(path)',
    ),
    (
        lambda key, value: key == "collation" and value.upper() != BINARY_COLLATION,
        "Strings are compared by their bytes: the collation {value} is not supported",
        "Leave it out, and write COLLATE where strings are compared",
    ),
    (
        lambda key, value: key.startswith("option."),
        "Tables of this catalog have no options of their own, such as '{key}'",
        "Use TBLPROPERTIES where docs/spark.md lists one; give options to each read or write, or set them on "
        "the catalog",
    ),
    (
        lambda key, value: key.endswith(".arrow.float16"),
        "Spark cannot write half floats ('{key}'): values would lose digits in silence",
        "Leave it out, or create the table with lance_sql.write, from Arrow data that has half floats",
    ),
    (
        lambda key, value: key.startswith("lance.") or ".lance." in key or ".arrow." in key,
        "The table property '{key}' is unknown",
        f"Known are: {', '.join(sorted(_CREATION))}; COLUMN.{', COLUMN.'.join([*_TYPES, *_HINTS])}",
    ),
    (
        _is_option,
        "'{key}' is an option of a read or a write, not a property of a table",
        "Give it to each read or write, as in df.write.option(name, value), or set it on the catalog",
    ),
)
