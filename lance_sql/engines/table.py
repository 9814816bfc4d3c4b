"""A Lance dataset as SQL engines see it: a declared schema, and scans that deliver exactly what was
declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.errors import LanceError

from lance_sql.query.statement import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from lance_engine.dataset import Dataset
    from lance_engine.scan import Scanner


class EngineTable:
    """`dataset` under the name an engine knows it by.

    `system_columns` are declared behind the data columns. `declare` maps a type that the engine cannot read
    to the one it is delivered as. `dictionaries` delivers strings that are stored as dictionaries as such:
    engines then group and compare codes.
    """

    def __init__(
        self,
        dataset: Dataset,
        name: str = "",
        system_columns: Sequence[str] = (),
        declare: Callable[[pa.DataType], pa.DataType] | None = None,
        dictionaries: bool = False,
    ) -> None:
        self.dataset = dataset
        self.name = name or dataset.uri
        #: the last error of a scan; engines pass on no more than its text
        self.failure: LanceError | None = None
        own = dataset.schema
        self.system_columns = tuple(column for column in system_columns if column not in own.names)
        fields = [own.field(index) for index in range(len(own.names))]
        fields += [pa.field(column, pa.uint64(), nullable=False) for column in self.system_columns]
        if declare is not None:
            fields = [field.with_type(declare(field.type)) for field in fields]
        #: string columns that are delivered as dictionaries
        self.coded = _stored_as_dictionaries(dataset) if dictionaries else frozenset()
        fields = [
            field.with_type(pa.dictionary(pa.int32(), field.type)) if field.name in self.coded else field
            for field in fields
        ]
        self.schema = pa.schema(fields, metadata=own.metadata)
        #: columns that are cast to another type than the dataset's
        self.converted = {
            field.name
            for field in fields
            if field.name not in SYSTEM_COLUMNS
            and field.name not in self.coded
            and field.type != own.field(field.name).type
        }

    @property
    def num_rows(self) -> int:
        """Live rows, known without reading data."""
        return self.dataset.count_rows()

    def scan(self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> Scanner:
        """A scan of the declared columns, before the casts that `batches` and `reader` make."""
        names = self.schema.names if columns is None else columns
        return self.dataset.scan(names, filter, dictionaries=self.coded.intersection(names), **options)

    def batches(self, scanner: Scanner) -> Iterator[pa.RecordBatch]:
        """The batches of a scan in the declared types. An error is kept in `failure` besides being raised."""
        schema = self._declared(scanner)
        convert = not self.converted.isdisjoint(schema.names)
        try:
            for batch in scanner.to_batches():
                yield batch.cast(schema) if convert else batch
        except LanceError as error:
            self.failure = error
            raise

    def reader(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.RecordBatchReader:
        """A scan as a stream, in the declared types."""
        scanner = self.scan(columns, filter)
        return pa.RecordBatchReader.from_batches(self._declared(scanner), self.batches(scanner))

    def _declared(self, scanner: Scanner) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in scanner.schema.names])


def _stored_as_dictionaries(dataset: Dataset) -> frozenset[str]:
    try:
        return frozenset(dataset.dictionary_columns())
    except LanceError:  # a damaged file: the scan itself will say so
        return frozenset()
