"""A Lance dataset as SQL engines see it: a declared schema, and scans that deliver exactly what was
declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from lance_engine.errors import LanceError
from lance_engine.scan.stream import ScanStream
from lance_engine.scan.system import SYSTEM_FIELDS

if TYPE_CHECKING:
    from lance_engine.dataset import Dataset
    from lance_engine.scan.scanner import Scanner


class WatchedScan(NamedTuple):
    """A scan of the table `name`; its metrics tell what it has read so far."""

    name: str
    scanner: Scanner


class EngineTable:
    """`dataset` under the name an engine knows it by.

    `system_columns` are declared behind the data columns. `declare` maps a type that the engine cannot read
    to the one it is delivered as. `dictionaries` delivers strings that are stored as dictionaries as such:
    engines then group and compare codes. `narrow_decimals` delivers decimals of up to 18 digits in 64 bits.
    `batch_rows` is how many rows its batches have at most.
    """

    def __init__(
        self,
        dataset: Dataset,
        name: str = "",
        system_columns: Sequence[str] = (),
        declare: Callable[[pa.DataType], pa.DataType] | None = None,
        dictionaries: bool = False,
        narrow_decimals: bool = False,
        batch_rows: int | None = None,
    ) -> None:
        self.dataset = dataset
        self.name = name or dataset.uri
        #: the last error of a scan; engines pass on no more than its text
        self.failure: LanceError | None = None
        #: scans are added to it, for those who ask what a statement read
        self.watched: list[WatchedScan] | None = None
        #: scans end with an error
        self.cancelled = False
        self._batch_rows = batch_rows
        own = dataset.schema
        self.system_columns = tuple(column for column in system_columns if column not in own.names)
        fields = [own.field(index) for index in range(len(own.names))]
        fields += [SYSTEM_FIELDS[column] for column in self.system_columns]
        if declare is not None:
            fields = [field.with_type(declare(field.type)) for field in fields]
        #: string columns that are delivered as dictionaries
        self.coded = _stored_as_dictionaries(dataset) if dictionaries else frozenset()
        fields = [
            field.with_type(pa.dictionary(pa.int32(), field.type)) if field.name in self.coded else field
            for field in fields
        ]
        #: columns that are cast to another type than the dataset's
        self.converted = {
            field.name
            for field in fields
            if field.name not in SYSTEM_FIELDS
            and field.name not in self.coded
            and field.type != own.field(field.name).type
        }
        #: what filters are written against
        self.filter_schema = pa.schema(fields, metadata=own.metadata)
        #: columns whose decimals are delivered in 64 bits
        self.narrowed = frozenset(
            field.name
            for field in fields
            if narrow_decimals and field.name not in self.converted and _fits_64_bits(field.type)
        )
        self.schema = pa.schema(
            [
                field.with_type(pa.decimal64(field.type.precision, field.type.scale))
                if field.name in self.narrowed
                else field
                for field in fields
            ],
            metadata=own.metadata,
        )

    @property
    def num_rows(self) -> int:
        """Live rows, known without reading data."""
        return self.dataset.count_rows()

    def scan(self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> Scanner:
        """A scan of the declared columns, before the casts that `batches` and `run` make."""
        names = self.schema.names if columns is None else columns
        options.setdefault("batch_size", self._batch_rows)
        scanner = self.dataset.scan(names, filter, dictionaries=self.coded.intersection(names), **options)
        if self.watched is not None:
            self.watched.append(WatchedScan(self.name, scanner))
        return scanner

    def batches(self, scanner: Scanner) -> Iterator[pa.RecordBatch]:
        """The batches of a scan in the declared types. An error is kept in `failure` besides being raised."""
        for batch in self.run(scanner).batches():
            if self.cancelled:
                self.failure = LanceError("the statement was cancelled")
                raise self.failure
            yield batch

    def stream(self, columns: Sequence[str] | None = None, filter: Any = None) -> object:
        """A scan as a capsule of an Arrow C stream, in the declared types; errors are kept in `failure`."""
        return self.run(self.scan(columns, filter)).capsule()

    def run(self, scanner: Scanner) -> ScanStream:
        """A run of a scan in the declared types."""
        schema = self._declared(scanner)
        cast = not self.converted.isdisjoint(schema.names)
        narrowed = self.narrowed.intersection(schema.names)
        convert = (lambda batch: batch.cast(schema)) if cast or narrowed else None
        return ScanStream(scanner, schema, convert, self._failed, () if cast else narrowed)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, LanceError):
            self.failure = error

    def _declared(self, scanner: Scanner) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in scanner.schema.names])


def _fits_64_bits(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind) and kind.precision <= 18)


def _stored_as_dictionaries(dataset: Dataset) -> frozenset[str]:
    try:
        return frozenset(dataset.dictionary_columns())
    except LanceError:  # a damaged file: the scan itself will say so
        return frozenset()
