"""The data source itself: what ``format("lance")`` means."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from lance_sql.spark.options import Options
from lance_sql.spark.reader import LanceReader, read_schema
from lance_sql.spark.streaming import LanceStreamReader, LanceStreamWriter
from lance_sql.spark.writer import LanceWriter


class LanceDataSource(DataSource):
    """Lance datasets in Spark; `lance_sql.spark.options` says which options reading and writing take."""

    @classmethod
    def name(cls) -> str:
        return "lance"

    def schema(self) -> StructType:
        return read_schema(Options.parse(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        return LanceReader(Options.parse(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return LanceWriter(Options.parse(self.options), schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return LanceStreamReader(Options.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return LanceStreamWriter(Options.parse(self.options), schema, overwrite)
