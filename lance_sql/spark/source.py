"""The data source itself: what ``format("lance")`` means."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from lance_sql.spark.options import Options
from lance_sql.spark.reader import LanceReader, read_schema
from lance_sql.spark.writer import LanceWriter


class LanceDataSource(DataSource):
    """Lance datasets in Spark; the package says which options reading and writing take."""

    @classmethod
    def name(cls) -> str:
        return "lance"

    def schema(self) -> StructType:
        return read_schema(Options.parse(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        return LanceReader(Options.parse(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return LanceWriter(Options.parse(self.options), schema, overwrite)
