"""A dataset as a `pyarrow.dataset.Dataset`, for libraries that read these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from lance_engine.base import with_extensions
from lance_engine.errors import UnsupportedFeatureError
from pyarrow.fs import LocalFileSystem

from lance_sql.engines.duckdb.source import DuckDBSource
from lance_sql.engines.partitions import Partition, partitions
from lance_sql.engines.table import EngineTable

if TYPE_CHECKING:
    import numpy.typing as npt
    from lance_engine.scan import Scanner

    from lance_sql.dataset import Dataset

#: The file name in the error when native pyarrow code tries to read the dataset.
_NOT_NATIVE = "a Lance dataset, which pyarrow cannot scan directly: use to_table() or lance_sql.sql()"


class ArrowDataset(pads.UnionDataset, DuckDBSource):  # type: ignore[misc]
    """One version of a Lance dataset with the methods of `pyarrow.dataset.Dataset`, as pyarrow defines them.

    `take` takes **positions**, as pyarrow's does; `lance_sql.Dataset.take` takes row ids. Filters follow SQL
    semantics: a comparison with null selects no row, and NaN is greater than every number.

    The native part of the base class is a union over one file that does not exist: a pyarrow operation that
    is implemented in C++ and bypasses the methods below fails with a clear message instead of crashing.
    """

    def __init__(self, dataset: Dataset) -> None:
        #: the dataset that is read
        self.dataset = dataset
        schema = with_extensions(dataset.storage_schema)
        file_format, filesystem = pads.IpcFileFormat(), LocalFileSystem()
        missing = file_format.make_fragment(_NOT_NATIVE, filesystem=filesystem)
        native = pads.FileSystemDataset([missing], schema, file_format, filesystem)
        pads.UnionDataset.__init__(self, schema, [native])

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrowDataset, (self.dataset,)

    def _engine_table(self) -> EngineTable:
        return EngineTable(self.dataset)

    @property
    def partition_expression(self) -> pc.Expression:
        """An expression that is true for all rows: no guarantee is known."""
        return pc.scalar(True)

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | str | None = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> Scanner:
        """A scan with the methods of a pyarrow scanner; pyarrow's options for its threads have no effect."""
        return self.dataset.scanner(columns, filter, batch_size, **options)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[Partition]:
        """Row ranges of the dataset; they only support the `scanner` method of a pyarrow fragment."""
        return iter(partitions(self._engine_table()))

    def to_table(self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> pa.Table:
        """The rows as a table; see `scanner`."""
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(
        self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """The rows as record batches; see `scanner`."""
        return self.scanner(columns, filter, **options).to_batches()

    def head(
        self, num_rows: int = 5, columns: Sequence[str] | None = None, filter: Any = None, **options: Any
    ) -> pa.Table:
        """The first `num_rows` rows that pass `filter`."""
        return self.dataset.head(num_rows, columns, filter, **options)

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """The number of rows that pass `filter`; without a filter, it comes from metadata."""
        return self.dataset.count_rows(filter, **options)

    def take(
        self,
        indices: npt.ArrayLike,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        **options: Any,
    ) -> pa.Table:
        """The rows at these positions among those that pass `filter`, as in pyarrow.

        Unlike `lance_sql.Dataset.take`, which takes row ids. Without a filter, only these rows are read.
        PositionOutOfRangeError, an IndexError, for a position outside of the dataset.
        """
        if filter is None:
            self.scanner(columns, **options)  # checks the options
            return self.dataset.take_positions(indices, columns)
        return self.to_table(columns, filter, **options).take(pa.array(indices, pa.int64()))

    def __arrow_c_schema__(self) -> object:
        return self.dataset.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.dataset.__arrow_c_stream__(requested_schema)

    # What pyarrow implements in C++ over files of its own.

    def filter(self, expression: Any) -> NoReturn:
        """Not supported; the methods above have a parameter `filter`."""
        _refuse("filter()", "Use to_table(filter=...) or lance_sql.sql()")

    def replace_schema(self, schema: Any) -> NoReturn:
        """Not supported."""
        _refuse("replace_schema()", "Use to_table().cast(schema)")

    def join(self, *args: Any, **options: Any) -> NoReturn:
        """Not supported."""
        _refuse("join()", "Use lance_sql.sql()")

    def join_asof(self, *args: Any, **options: Any) -> NoReturn:
        """Not supported."""
        _refuse("join_asof()", "Use lance_sql.sql()")

    def sort_by(self, *args: Any, **options: Any) -> NoReturn:
        """Not supported."""
        _refuse("sort_by()", "Use lance_sql.sql() or to_table().sort_by(...)")


def _refuse(operation: str, remedy: str) -> NoReturn:
    raise UnsupportedFeatureError(f"A Lance dataset does not support pyarrow's {operation}", remedy=remedy)
