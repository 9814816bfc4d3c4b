"""What tests of indices share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance_engine.scan.scanner import Scanner

KINDS = ["btree", "bitmap", "zonemap", "bloomfilter"]


def addresses(scan: Scanner) -> list[int]:
    """The addresses of the rows of a scan of that column."""
    found: list[int] = sorted(scan.to_table()["_rowaddr"].to_pylist())
    return found


def nullable(column: pa.Array, rng: np.random.Generator, share: float = 0.1) -> pa.Array:
    """The column with some nulls."""
    null: Any = pa.array(rng.random(len(column)) < share)
    return pc.if_else(null, pa.scalar(None, column.type), column)
