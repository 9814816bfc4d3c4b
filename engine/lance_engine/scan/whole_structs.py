"""Batches without slices of structs of structs: engines fail on these."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at


def has_structs_of_structs(schema: pa.Schema) -> bool:
    """Whether a column is a struct with a struct in it."""
    return any(map(_is_struct_of_structs, schema.types))


def from_the_start(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` without sliced structs of structs, which DuckDB and DataFusion cannot import."""
    if not has_structs_of_structs(batch.schema):
        return batch
    arrays = [
        pa.concat_arrays([array, array.slice(0, 0)])
        if array.offset and _is_struct_of_structs(array.type)
        else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _is_struct_of_structs(kind: pa.DataType) -> bool:
    return bool(at.is_struct(kind) and any(at.is_struct(field.type) for field in kind))
