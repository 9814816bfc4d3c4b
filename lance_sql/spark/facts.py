"""Facts about a table that the planner in the JVM receives with its schema, to avoid further requests."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.dataset import DatasetVersion
from pyspark.sql.types import StructField, StructType

KEY: Final = "lance_sql"  # as in TableFacts.java


def with_facts(schema: StructType, dataset: DatasetVersion) -> StructType:
    """`schema` with the facts as metadata of its first field, where JSON schemas can store them."""
    if not schema.fields:
        return schema
    snapshot = dataset.snapshot
    sizes = [file.file_size for fragment in snapshot.fragments for file in fragment.files]
    facts = {
        "version": dataset.version,
        "rows": dataset.count_rows(),
        "bytes": sum(size or 0 for size in sizes) if all(size is not None for size in sizes) else -1,
        "blobs": [field.name for field in snapshot.schema.fields if field.is_blob],
        "exact": [field.name for field in dataset.storage_schema if is_exact(field.type)],
    }
    first = schema.fields[0]
    told = StructField(
        first.name, first.dataType, first.nullable, {**(first.metadata or {}), KEY: json.dumps(facts)}
    )
    return StructType([told, *schema.fields[1:]])


def is_exact(kind: pa.DataType) -> bool:
    """Whether Spark sees the stored values unchanged and compares them as our filters do.

    Spark rounds some timestamps and widens half floats, and orders NaN differently: filters on such columns
    only skip data, and Spark tests the remaining rows.
    """
    return bool(
        at.is_signed_integer(kind)
        or at.is_boolean(kind)
        or at.is_date32(kind)
        or at.is_string(kind)
        or at.is_large_string(kind)
        or at.is_decimal128(kind)
    )
