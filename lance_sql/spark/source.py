"""The data source ``format("lance")``."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from lance_sql.spark.column_writer import ColumnsWriter
from lance_sql.spark.commands import run
from lance_sql.spark.facts import with_facts
from lance_sql.spark.options import Options, Use
from lance_sql.spark.planner import tell_without_planner
from lance_sql.spark.reader import LanceReader, schema_of
from lance_sql.spark.row_writer import RowChangesWriter
from lance_sql.spark.streaming import LanceStreamReader, LanceStreamWriter
from lance_sql.spark.types import spark_schema
from lance_sql.spark.workers import settle
from lance_sql.spark.writer import LanceWriter, PackedWriter

#: The data source name for users, and the name of its Python part for the planner in the JVM.
FORMAT: Final = "lance"
PYTHON_FORMAT: Final = "lance_python"
FORMATS: Final = (FORMAT, PYTHON_FORMAT)


class LanceDataSource(DataSource):
    """Lance datasets in Spark; `lance_sql.spark.options` describes the options for reading and writing."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        tell_without_planner()
        options = Options.parse(self.options)
        return schema_of(options, options.open())

    def reader(self, schema: StructType) -> DataSourceReader:
        return LanceReader(Options.parse(self.options, Use.READ), _struct(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if type(self) is LanceDataSource:
            tell_without_planner()
        return LanceWriter(Options.parse(self.options, Use.WRITE), _struct(schema), overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return LanceStreamReader(Options.parse(self.options, Use.STREAM_READ), _struct(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return LanceStreamWriter(Options.parse(self.options, Use.STREAM_WRITE), _struct(schema), overwrite)


class PlannedDataSource(LanceDataSource):
    """The Python part for the planner in the JVM, whose jar provides ``format("lance")``."""

    @classmethod
    def name(cls) -> str:
        return PYTHON_FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        options = Options.parse(self.options, Use.WRITE)
        if options.changed_columns is not None:
            return ColumnsWriter(options, schema)
        if options.changed_version is not None:
            return RowChangesWriter(options, schema)
        if options.packed is not None:
            return PackedWriter(options, StructType.fromJson(json.loads(options.packed)), overwrite)
        return super().writer(schema, overwrite)

    def schema(self) -> StructType:
        options = Options.parse(self.options)
        if options.catalog_command is not None:
            answer = run(options)
        else:
            dataset = options.open()
            answer = with_facts(schema_of(options, dataset), dataset)
        settle()
        return answer


def _struct(schema: StructType | pa.Schema) -> StructType:
    """The schema as Spark passes it; Sail passes an Arrow schema."""
    return spark_schema(schema) if isinstance(schema, pa.Schema) else schema
