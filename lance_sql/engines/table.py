"""A Lance dataset as SQL engines see it: a declared schema, and scans that deliver exactly what was
declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_sql.query.statement import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from lance_engine.dataset import Dataset
    from lance_engine.scan import Scanner


class EngineTable:
    """`dataset` under the name an engine knows it by.

    `system_columns` are declared behind the data columns. `declare` maps a type that the engine cannot read
    to the one it is delivered as.
    """

    def __init__(
        self,
        dataset: Dataset,
        name: str = "",
        system_columns: Sequence[str] = (),
        declare: Callable[[pa.DataType], pa.DataType] | None = None,
    ) -> None:
        self.dataset = dataset
        self.name = name or dataset.uri
        self.system_columns = tuple(system_columns)
        own = dataset.schema
        fields = [own.field(index) for index in range(len(own.names))]
        fields += [pa.field(column, pa.uint64(), nullable=False) for column in self.system_columns]
        if declare is not None:
            fields = [field.with_type(declare(field.type)) for field in fields]
        self.schema = pa.schema(fields, metadata=own.metadata)
        #: columns that are delivered with another type than the dataset's
        self.converted = {
            field.name
            for field in fields
            if field.name not in SYSTEM_COLUMNS and field.type != own.field(field.name).type
        }

    @property
    def num_rows(self) -> int:
        """Live rows, known without reading data."""
        return self.dataset.count_rows()

    def scan(self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> Scanner:
        """The scan of the declared columns, still in the dataset's own types; `to_declared` converts."""
        return self.dataset.scan(
            columns=self.schema.names if columns is None else columns, filter=filter, **options
        )

    def reader(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.RecordBatchReader:
        """The batches of a scan in the declared types."""
        scanner = self.scan(columns, filter)
        if self.converted.isdisjoint(scanner.schema.names):
            return scanner.to_reader()
        schema = pa.schema([self.schema.field(name) for name in scanner.schema.names])

        def converted() -> Iterator[pa.RecordBatch]:
            for batch in scanner.to_reader():
                yield batch.cast(schema)

        return pa.RecordBatchReader.from_batches(schema, converted())
