"""Arrow types as Spark types and back, without a Spark session."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pyspark.sql.types as spark
import pytest
from lance_engine.errors import UnsupportedTypeError

from lance_sql.spark.types import spark_schema, stored_schema, to_spark
from lance_sql.spark.versions import arrow_schema

NOON = datetime.datetime(2024, 1, 1, 12)

# Arrow type, Spark type, values, values as Spark sees them where they differ
CONVERSIONS = [
    (pa.bool_(), spark.BooleanType(), [True, None], None),
    (pa.int8(), spark.ByteType(), [-128, None], None),
    (pa.int64(), spark.LongType(), [2**63 - 1, None], None),
    (pa.uint8(), spark.ShortType(), [255, None], None),
    (pa.uint16(), spark.IntegerType(), [65535], None),
    (pa.uint32(), spark.LongType(), [2**32 - 1], None),
    (pa.uint64(), spark.DecimalType(20, 0), [2**64 - 1, None], [Decimal(2**64 - 1), None]),
    (pa.float16(), spark.FloatType(), [1.5, None], None),
    (pa.float64(), spark.DoubleType(), [0.1, float("inf")], None),
    (pa.large_string(), spark.StringType(), ["é", None], None),
    (pa.large_binary(), spark.BinaryType(), [b"\x00"], None),
    (pa.binary(2), spark.BinaryType(), [b"ab", None], None),
    (pa.dictionary(pa.int8(), pa.string()), spark.StringType(), ["a", None, "a"], None),
    (pa.date32(), spark.DateType(), [datetime.date(1969, 12, 31)], None),
    (pa.date64(), spark.DateType(), [datetime.date(2024, 2, 29)], None),
    (pa.timestamp("s"), spark.TimestampNTZType(), [NOON, None], None),
    (pa.timestamp("ms", "Asia/Tokyo"), spark.TimestampType(), [NOON.replace(tzinfo=datetime.UTC)], None),
    (pa.time32("s"), spark.TimeType(), [datetime.time(1, 2, 3)], None),
    (pa.duration("ms"), spark.DayTimeIntervalType(), [datetime.timedelta(milliseconds=5)], None),
    (pa.decimal128(38, 10), spark.DecimalType(38, 10), [Decimal("1.5")], None),
    (pa.decimal256(20, 2), spark.DecimalType(20, 2), [Decimal("1.5")], None),
    (pa.large_list(pa.uint8()), spark.ArrayType(spark.ShortType()), [[1, None], None], None),
    (pa.list_(pa.float32(), 2), spark.ArrayType(spark.FloatType()), [[1.0, 2.0], None], None),
    (
        pa.struct([("a", pa.uint32()), ("b", pa.list_(pa.large_string()))]),
        spark.StructType().add("a", "long").add("b", spark.ArrayType(spark.StringType())),
        [{"a": 1, "b": ["x"]}, None],
        None,
    ),
    (
        pa.map_(pa.string(), pa.int8()),
        spark.MapType(spark.StringType(), spark.ByteType()),
        [[("k", 1)]],
        None,
    ),
    (pa.null(), spark.NullType(), [None], None),
]


@pytest.mark.parametrize(
    ("arrow", "expected", "values", "seen"), CONVERSIONS, ids=lambda case: str(case)[:40]
)
def test_a_column_becomes_exactly_what_spark_demands(
    arrow: pa.DataType, expected: spark.DataType, values: list[object], seen: list[object] | None
) -> None:
    batch = pa.record_batch({"c": pa.array(values, arrow)})
    schema = spark_schema(batch.schema)
    assert schema["c"].dataType == expected
    target = arrow_schema(schema)
    given = to_spark(batch, target)
    given.validate(full=True)
    assert given.schema.equals(target)
    assert given["c"].to_pylist() == (values if seen is None else seen)


def test_times_finer_than_microseconds_are_truncated() -> None:
    batch = pa.record_batch({"t": pa.array([1_999], pa.timestamp("ns"))})
    given = to_spark(batch, arrow_schema(spark_schema(batch.schema)))
    assert given["t"].cast(pa.int64()).to_pylist() == [1]


def test_row_numbers_are_bigint() -> None:
    schema = spark_schema(pa.schema([("_rowid", pa.uint64()), ("other", pa.uint64())]))
    assert (schema["_rowid"].dataType, schema["other"].dataType) == (
        spark.LongType(),
        spark.DecimalType(20, 0),
    )


@pytest.mark.parametrize("arrow", [pa.decimal256(39, 2), pa.month_day_nano_interval(), pa.decimal128(5, -2)])
def test_a_type_spark_lacks_is_refused_with_the_path_of_its_column(arrow: pa.DataType) -> None:
    schema = pa.schema([("ok", pa.int8()), ("outer", pa.struct([("inner", arrow)]))])
    with pytest.raises(UnsupportedTypeError, match=r"outer\.inner.*option 'columns'"):
        spark_schema(schema)


def test_a_created_dataset_is_nullable_at_every_level() -> None:
    inner = spark.StructType([spark.StructField("a", spark.ArrayType(spark.LongType(), False), False)])
    (field,) = stored_schema(spark.StructType([spark.StructField("s", inner, False)]))
    assert field.nullable
    assert field.type.field("a").nullable
    assert field.type.field("a").type.value_field.nullable
