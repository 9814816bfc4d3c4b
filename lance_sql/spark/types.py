"""Converts between Arrow and Spark types: the Spark type of a Lance column, and Arrow batches of that type.

Spark has fewer types than Lance. Unsigned integers become the next wider signed type, half floats become
floats, fixed-size lists and binaries become plain ones, dictionaries become their values; times and
timestamps become microseconds, UTC if there is a time zone. Decimals of more than 38 digits have no Spark
type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.types as spark
from lance_engine.base import Schema
from lance_engine.errors import ColumnNotFoundError, SchemaMismatchError, UnsupportedTypeError
from lance_engine.scan import SYSTEM_FIELDS
from lance_engine.write import check_compatible, conform

from lance_sql.catalog.metadata import COMMENT
from lance_sql.spark.versions import BINARY_COLLATION, TIME_TYPE, arrow_schema, collation_of
from lance_sql.types.table import TYPES

MAX_DECIMAL_DIGITS: Final = 38
ROW_NUMBER_COLUMNS: Final = frozenset(SYSTEM_FIELDS)

#: Spark's types without parameters by the names that the table of types has.
_NAMED: Final[dict[str, spark.DataType]] = {
    kind.simpleString(): kind
    for kind in (
        spark.BooleanType(),
        spark.ByteType(),
        spark.ShortType(),
        spark.IntegerType(),
        spark.LongType(),
        spark.DecimalType(20, 0),
        spark.FloatType(),
        spark.DoubleType(),
        spark.StringType(),
        spark.BinaryType(),
        spark.DateType(),
    )
}
_SIMPLE: Final[dict[pa.DataType, spark.DataType]] = {
    pa.null(): spark.NullType(),
    pa.string_view(): spark.StringType(),
    pa.binary_view(): spark.BinaryType(),
} | {names.arrow: _NAMED[names.spark] for names in TYPES if names.spark in _NAMED}

_FAMILIES: Final[
    tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], spark.DataType]], ...]
] = (
    (pa.types.is_fixed_size_binary, lambda t, path: spark.BinaryType()),
    (pa.types.is_timestamp, lambda t, path: spark.TimestampType() if t.tz else spark.TimestampNTZType()),
    (pa.types.is_time, lambda t, path: _time(t, path)),
    (pa.types.is_duration, lambda t, path: spark.DayTimeIntervalType()),
    (pa.types.is_decimal, lambda t, path: _decimal(t, path)),
    (pa.types.is_dictionary, lambda t, path: spark_type(t.value_type, path)),
    (pa.types.is_list, lambda t, path: _array(t, path)),
    (pa.types.is_large_list, lambda t, path: _array(t, path)),
    (pa.types.is_fixed_size_list, lambda t, path: _array(t, path)),
    (
        pa.types.is_struct,
        lambda t, path: spark.StructType([_field(child, f"{path}.{child.name}") for child in t]),
    ),
    (
        pa.types.is_map,
        lambda t, path: spark.MapType(
            spark_type(t.key_type, f"{path}.key"),
            spark_type(t.item_type, f"{path}.value"),
            t.item_field.nullable,
        ),
    ),
)


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The Spark schema for reading these columns; UnsupportedTypeError if one has no Spark type."""
    return spark.StructType([_field(field, field.name) for field in schema])


def spark_type(arrow: pa.DataType, path: str) -> spark.DataType:
    """The Spark type of one column; `path` is for the error."""
    if isinstance(arrow, pa.BaseExtensionType):
        return spark_type(arrow.storage_type, path)
    simple = _SIMPLE.get(arrow)
    if simple is not None:
        return simple
    for belongs, convert in _FAMILIES:
        if belongs(arrow):
            return convert(arrow, path)
    raise _no_spark_type(arrow, path)


def stored_schema(schema: spark.StructType) -> pa.Schema:
    """The schema of a dataset that Spark creates: all columns nullable, as in all other formats it writes.

    The nullability of a DataFrame's column depends on how it was computed, not on rows appended later.
    """
    return arrow_schema(schema.toNullable())


def with_comments(schema: pa.Schema, described: spark.StructType) -> pa.Schema:
    """The schema with the comments of the columns and fields of `described`, which has the same shape."""
    pairs = zip(schema, described.fields, strict=True)
    return pa.schema([_with_comment(field, column) for field, column in pairs], schema.metadata)


def _with_comment(field: pa.Field, described: spark.StructField) -> pa.Field:
    if isinstance(described.dataType, spark.StructType):
        pairs = zip(field.type, described.dataType.fields, strict=True)
        field = field.with_type(pa.struct([_with_comment(child, column) for child, column in pairs]))
    comment = (described.metadata or {}).get(COMMENT)
    # Some versions of PySpark store all metadata as JSON, which would not follow ALTER TABLE.
    return field.with_metadata(None if comment is None else {COMMENT: comment})


def check_storable(schema: spark.StructType) -> None:
    """UnsupportedTypeError for a column whose values would lose their meaning in Arrow."""
    for field in schema.fields:
        _check_storable(field.dataType, field.name)


def _check_storable(kind: spark.DataType, path: str) -> None:
    if isinstance(kind, spark.StructType):
        for field in kind.fields:
            _check_storable(field.dataType, f"{path}.{field.name}")
    elif isinstance(kind, spark.ArrayType):
        _check_storable(kind.elementType, f"{path}.item")
    elif isinstance(kind, spark.MapType):
        _check_storable(kind.keyType, f"{path}.key")
        _check_storable(kind.valueType, f"{path}.value")
    elif isinstance(kind, spark.StringType) and collation_of(kind) != BINARY_COLLATION:
        raise UnsupportedTypeError(
            f"Strings are compared by their bytes: the collation {collation_of(kind)} is not supported",
            column=path,
            remedy="Cast the column to STRING, and write COLLATE where strings are compared",
        )
    elif not isinstance(kind, _STORABLE):
        raise UnsupportedTypeError(
            f"The Spark type {kind.simpleString()} is not supported",
            column=path,
            remedy="Cast the column, for example to string, or drop it",
        )


_STORABLE: Final = (
    spark.NullType,
    spark.BooleanType,
    spark.IntegralType,
    spark.FractionalType,
    spark.StringType,
    spark.BinaryType,
    spark.DateType,
    *([TIME_TYPE] if TIME_TYPE is not None else []),
    spark.TimestampType,
    spark.TimestampNTZType,
    spark.DayTimeIntervalType,
)


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the types of `schema`, an `arrow_schema`, which may lack fields of structs.

    Times finer than microseconds are truncated.
    """
    columns = [
        pc.cast(column, options=pc.CastOptions(target_type=field.type, allow_time_truncate=True))
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _field(field: pa.Field, path: str) -> spark.StructField:
    if field.name in ROW_NUMBER_COLUMNS and field.type == pa.uint64():
        # Row ids and addresses are far below 2**63, and bigint is more convenient than decimal(20, 0).
        return spark.StructField(field.name, spark.LongType(), field.nullable)
    comment = (field.metadata or {}).get(COMMENT.encode())
    metadata = None if comment is None else {COMMENT: comment.decode("utf-8", "replace")}
    return spark.StructField(field.name, spark_type(field.type, path), field.nullable, metadata)


def _array(arrow: pa.DataType, path: str) -> spark.ArrayType:
    return spark.ArrayType(spark_type(arrow.value_type, f"{path}.item"), arrow.value_field.nullable)


def _time(arrow: pa.DataType, path: str) -> spark.DataType:
    if TIME_TYPE is None:
        raise _no_spark_type(arrow, path)
    time: spark.DataType = TIME_TYPE()
    return time


def _decimal(arrow: pa.DataType, path: str) -> spark.DecimalType:
    if arrow.precision > MAX_DECIMAL_DIGITS or not 0 <= arrow.scale <= arrow.precision:
        raise _no_spark_type(arrow, path)
    return spark.DecimalType(arrow.precision, arrow.scale)


def _no_spark_type(arrow: pa.DataType, path: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"Spark has no equivalent of the type {arrow}",
        column=path,
        remedy="Exclude the column with the option 'columns'",
    )


def check_fits(offered: pa.Schema, target: Schema) -> None:
    """SchemaMismatchError unless rows of `offered` can be stored in columns of `target`."""
    added = [name for name in offered.names if name not in target.names]
    if added:
        raise SchemaMismatchError(
            f"Column '{added[0]}' not found in the dataset",
            remedy="Drop or rename it, or add it to the dataset with the option mergeSchema=true. "
            "Available columns: " + ", ".join(target.names[:20]),
        )
    check_compatible(offered, target.to_arrow())
    # A batch without rows shows which types do not fit.
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in offered], schema=offered)
    for _ in conform([empty], target):
        pass


def with_fixed_sizes(schema: pa.Schema, sizes: Mapping[str, int]) -> pa.Schema:
    """The schema with the given array columns as fixed-size lists; SchemaMismatchError for other columns."""
    fields = {field.name: field for field in schema}
    for name, size in sizes.items():
        field = fields.get(name)
        if field is None:
            raise ColumnNotFoundError(
                f"No column '{name}' to convert to a fixed-size list",
                remedy="See the option 'fixed_size_lists'",
            )
        if not pa.types.is_list(field.type):
            raise SchemaMismatchError(
                f"Only arrays can become fixed-size lists, not {field.type}",
                column=name,
                remedy="Remove the column from the option 'fixed_size_lists'",
            )
        fields[name] = field.with_type(pa.list_(field.type.value_field, size))
    return pa.schema([fields[field.name] for field in schema], schema.metadata)


def with_compression(schema: pa.Schema, compression: str | None) -> pa.Schema:
    """The schema with a compression setting in all fields (format 2.1, field metadata)."""
    if compression is None:
        return schema
    return pa.schema([_compressed(field, compression) for field in schema], schema.metadata)


def _compressed(field: pa.Field, compression: str) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_compressed(child, compression) for child in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(_compressed(kind.key_field, compression), _compressed(kind.item_field, compression))
    elif pa.types.is_list(kind):
        kind = pa.list_(_compressed(kind.value_field, compression))
    else:
        return field.with_metadata({"lance-encoding:compression": compression})
    return field.with_type(kind)
