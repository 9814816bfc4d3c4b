"""The table of types: what Lance, DuckDB, DataFusion and Spark call the type of a column.

Spark's Python reads it, and so do the page about the engines and the tests, which ask each engine. Types with
parameters, and types that contain others, stand for their kind.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa
from lance_engine.expr import SQL_NAMES


class Names(NamedTuple):
    """A type of Arrow, its logical type in files, and what the engines call it.

    DuckDB's name is the SQL name, unless `named` is another.
    """

    arrow: pa.DataType
    lance: str
    datafusion: str
    spark: str
    named: str = ""

    @property
    def duckdb(self) -> str:
        """DuckDB's name."""
        return self.named or SQL_NAMES[self.arrow]


def names_of(*kinds: pa.DataType) -> frozenset[str]:
    """What results of the engines call columns of these types: DuckDB's names, and Arrow's."""
    return frozenset(name for row in TYPES if row.arrow in kinds for name in (row.duckdb, str(row.arrow)))


TYPES: Final = (
    Names(pa.bool_(), "bool", "Boolean", "boolean"),
    Names(pa.int8(), "int8", "Int8", "tinyint"),
    Names(pa.int16(), "int16", "Int16", "smallint"),
    Names(pa.int32(), "int32", "Int32", "int"),
    Names(pa.int64(), "int64", "Int64", "bigint"),
    Names(pa.uint8(), "uint8", "UInt8", "smallint"),
    Names(pa.uint16(), "uint16", "UInt16", "int"),
    Names(pa.uint32(), "uint32", "UInt32", "bigint"),
    Names(pa.uint64(), "uint64", "UInt64", "decimal(20,0)"),
    Names(pa.float16(), "halffloat", "Float16", "float"),
    Names(pa.float32(), "float", "Float32", "float"),
    Names(pa.float64(), "double", "Float64", "double"),
    Names(pa.decimal128(10, 2), "decimal:128:10:2", "Decimal128(10, 2)", "decimal(10,2)", "DECIMAL(10,2)"),
    Names(pa.decimal128(38, 2), "decimal:128:38:2", "Decimal128(38, 2)", "decimal(38,2)", "DECIMAL(38,2)"),
    Names(pa.string(), "string", "Utf8", "string"),
    Names(pa.large_string(), "large_string", "LargeUtf8", "string"),
    Names(pa.binary(), "binary", "Binary", "binary"),
    Names(pa.large_binary(), "large_binary", "LargeBinary", "binary"),
    Names(pa.binary(2), "fixed_size_binary:2", "FixedSizeBinary(2)", "binary", "BLOB"),
    Names(pa.date32(), "date32:day", "Date32", "date"),
    Names(pa.date64(), "date64:ms", "Date64", "date"),
    Names(pa.time32("s"), "time32:s", "Time32(s)", "time(6)", "TIME"),
    Names(pa.time32("ms"), "time32:ms", "Time32(ms)", "time(6)", "TIME"),
    Names(pa.time64("us"), "time64:us", "Time64(µs)", "time(6)"),
    Names(pa.timestamp("s"), "timestamp:s:-", "Timestamp(s)", "timestamp_ntz"),
    Names(pa.timestamp("ms"), "timestamp:ms:-", "Timestamp(ms)", "timestamp_ntz"),
    Names(pa.timestamp("us"), "timestamp:us:-", "Timestamp(µs)", "timestamp_ntz"),
    Names(pa.timestamp("ns"), "timestamp:ns:-", "Timestamp(ns)", "timestamp_ntz"),
    Names(pa.timestamp("us", "UTC"), "timestamp:us:UTC", 'Timestamp(µs, "UTC")', "timestamp"),
    Names(pa.duration("us"), "duration:us", "Duration(µs)", "interval day to second", "INTERVAL"),
    Names(pa.list_(pa.int64()), "list", "List(Int64)", "array<bigint>", "BIGINT[]"),
    Names(pa.large_list(pa.int64()), "large_list", "LargeList(Int64)", "array<bigint>", "BIGINT[]"),
    Names(
        pa.list_(pa.float32(), 2),
        "fixed_size_list:float:2",
        "FixedSizeList(2 x Float32)",
        "array<float>",
        "FLOAT[2]",
    ),
    Names(
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        "struct",
        'Struct("a": Int64, "b": Utf8)',
        "struct<a:bigint,b:string>",
        "STRUCT(a BIGINT, b VARCHAR)",
    ),
    Names(
        pa.map_(pa.string(), pa.int64()),
        "map",
        'Map("entries": non-null Struct("key": non-null Utf8, "value": Int64), unsorted)',
        "map<string,bigint>",
        "MAP(VARCHAR, BIGINT)",
    ),
    Names(
        pa.dictionary(pa.int32(), pa.string()),
        "dict:string:int32:false",
        "Dictionary(Int32, Utf8)",
        "string",
        "VARCHAR",
    ),
)
