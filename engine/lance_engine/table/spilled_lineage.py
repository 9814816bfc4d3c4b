"""Row ids and row versions that are stored as columns of a data file (format of tables, spilled lineage)."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError
from lance_engine.file.decoding import decode_fetched
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.reader import FileReader
from lance_engine.format.fragment import (
    SPILLED_CREATED_AT,
    SPILLED_LAST_UPDATED_AT,
    SPILLED_ROW_IDS,
    Fragment,
)
from lance_engine.io.store import Store
from lance_engine.schema_tree import NO_PARENT, Field

_NAMES: Final = {
    SPILLED_ROW_IDS: "_rowid",
    SPILLED_CREATED_AT: "_row_created_at_version",
    SPILLED_LAST_UPDATED_AT: "_row_last_updated_at_version",
}


def read_spilled(
    fragment: Fragment, column: int, locations: list[tuple[Store, str]]
) -> npt.NDArray[np.uint64]:
    """One value per physical row, shape (physical_rows,); `locations` are those of the fragment's files."""
    number = max(
        (number for number, file in enumerate(fragment.files) if column in file.fields), default=None
    )
    if number is None:
        raise CorruptFileError(f"No data file has the column {_NAMES[column]} of the fragment")
    file, (store, path) = fragment.files[number], locations[number]
    position = file.fields.index(column)
    if position >= len(file.column_indices):
        raise CorruptFileError("A data file does not record where its row lineage is", path=path)
    reader = FileReader(store, path, size=file.file_size)
    index, rows = file.column_indices[position], fragment.physical_rows
    builder = FieldBuilder(lambda _: (reader, index), rows)
    field = Field(_NAMES[column], 0, NO_PARENT, "uint64", nullable=False)
    with reader.placed(column=field.name):
        columns = kernels.Columns([builder.build(field)])
        decoded = decode_fetched(
            list(builder.leaves.items()),
            lambda: np.array([[0, rows]]),
            lambda overlays: columns.decode_range(0, rows, overlays),
        )
        batch = pa.RecordBatch._import_from_c(decoded.address, pa.schema([field.to_arrow()]))
        if batch.column(0).null_count:
            raise CorruptFileError("The row lineage of a fragment contains nulls")
    values: npt.NDArray[np.uint64] = batch.column(0).to_numpy()
    return values
