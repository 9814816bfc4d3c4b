"""Every Spark type through a dataset and back; types without a counterpart are refused."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark import table, write

#: SQL of a value for every type; each is stored alone, as null, in an array, in a struct and in a map.
VALUES = {
    "boolean": "true",
    "tinyint": "-128Y",
    "smallint": "32767S",
    "int": "-2147483648",
    "bigint": "9223372036854775807L",
    "float": "float('-infinity')",
    "double": "double('1e-300')",
    "decimal(38,10)": "cast('-1234567890123456789012345678.0123456789' as decimal(38,10))",
    "decimal(5,0)": "cast(-99999 as decimal(5,0))",
    "string": "'Grüße \U0001f600'",
    "char(3)": "'abc'",
    "binary": "X'00FF'",
    "date": "DATE '0001-01-01'",
    "timestamp": "TIMESTAMP '9999-12-31 23:59:59.999999Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ '1900-01-01 00:00:00.000001'",
    "interval day to second": "INTERVAL '-3 04:05:06.789' DAY TO SECOND",
    "void": "null",
}
REFUSED = {
    "interval year to month": "INTERVAL '1-2' YEAR TO MONTH",
    "variant": "parse_json('{\"a\": 1}')",
    "interval": "make_interval(1, 2, 3)",
}


def test_every_type_in_every_place(spark: SparkSession, tmp_path: Path) -> None:
    columns = []
    for number, (kind, value) in enumerate(VALUES.items()):
        typed = "null" if kind == "void" else f"cast({value} AS {kind})"
        columns.append(f"{typed} AS plain{number}")
        if kind == "void":
            continue
        inner = f"array(named_struct('c', {typed}))"
        columns += [
            f"if(id = 1, null, {typed}) AS nullable{number}",
            f"if(id = 1, null, array({typed}, null)) AS many{number}",
            f"if(id = 2, null, named_struct('a', {typed}, 'b', {inner})) AS st{number}",
            f"if(id = 1, map(), map('k', {typed}, 'n', null)) AS m{number}",
        ]
    frame = spark.range(1, 4).coalesce(1).selectExpr(*columns)
    path = tmp_path / "t.lance"
    write(frame, path, data_storage_version="2.2")
    back = table(spark, str(path))
    assert [(field.name, field.dataType.simpleString()) for field in back.schema] == [
        (field.name, field.dataType.simpleString()) for field in frame.schema
    ]
    assert back.collect() == frame.collect()
    assert lance_sql.open(path).verify(values=True).num_rows == 0
    official = lance.dataset(path).to_table()
    assert repr(official.to_pylist()) == repr(lance_sql.open(path).to_table().to_pylist())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", REFUSED)
def test_types_without_a_counterpart_are_refused(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    with pytest.raises(PySparkException) as caught:
        write(spark.sql(f"SELECT {REFUSED[kind]} AS odd"), tmp_path / "t.lance")
    assert not list(tmp_path.iterdir()), caught.value


def test_maps_choose_version_22(spark: SparkSession, tmp_path: Path) -> None:
    maps = spark.sql("SELECT map('k', 1) AS m")
    write(maps, tmp_path / "t.lance")
    assert lance_sql.open(tmp_path / "t.lance").to_table().to_pylist() == [{"m": [("k", 1)]}]
    with pytest.raises(PySparkException, match=r"Maps are not supported in file version 2\.1.*column: m"):
        write(maps, tmp_path / "other.lance", data_storage_version="2.1")
