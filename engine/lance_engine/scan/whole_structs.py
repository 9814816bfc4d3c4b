"""Batches without slices of structs within structs or fixed-size lists: engines fail on these."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at


def has_inner_structs(schema: pa.Schema) -> bool:
    """Whether a column has structs directly within structs or fixed-size lists."""
    return any(map(_has_inner_struct, schema.types))


def from_the_start(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` without sliced columns of such structs, which DuckDB and DataFusion cannot import."""
    if not has_inner_structs(batch.schema):
        return batch
    arrays = [
        pa.concat_arrays([array, array.slice(0, 0)])
        if array.offset and _has_inner_struct(array.type)
        else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _has_inner_struct(kind: pa.DataType) -> bool:
    fields = kind if at.is_struct(kind) else [kind.value_field] if at.is_fixed_size_list(kind) else []
    return any(at.is_struct(field.type) or _has_inner_struct(field.type) for field in fields)
