"""What the planner in the JVM learns of a table along with its schema, so that planning asks no more."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.dataset import DatasetVersion
from pyspark.sql.types import StructField, StructType

KEY: Final = "lance_sql"  # as in TableFacts.java


def with_facts(schema: StructType, dataset: DatasetVersion) -> StructType:
    """`schema` with the facts as metadata of its first field, where a JSON schema has room for them."""
    if not schema.fields:
        return schema
    snapshot = dataset.snapshot
    sizes = [file.file_size for fragment in snapshot.fragments for file in fragment.files]
    facts = {
        "version": dataset.version,
        "rows": dataset.count_rows(),
        "bytes": sum(size or 0 for size in sizes) if all(size is not None for size in sizes) else -1,
        "exact": [field.name for field in dataset.storage_schema if is_exact(field.type)],
    }
    first = schema.fields[0]
    told = StructField(
        first.name, first.dataType, first.nullable, {**(first.metadata or {}), KEY: json.dumps(facts)}
    )
    return StructType([told, *schema.fields[1:]])


def is_exact(kind: pa.DataType) -> bool:
    """Whether Spark sees the values as they are stored and compares them as filters here do.

    Spark sees some moments rounded and half floats widened, and NaN has an order of its own: filters on such
    columns skip what they can here, and Spark tests the rows that are left.
    """
    return bool(
        at.is_signed_integer(kind)
        or at.is_boolean(kind)
        or at.is_date32(kind)
        or at.is_string(kind)
        or at.is_large_string(kind)
        or at.is_decimal128(kind)
    )
