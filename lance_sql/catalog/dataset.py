"""The dataset as statements see it: without the pyarrow face, which takes longer to import than a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.expr import external

from lance_sql.catalog.values import compile_value


def _compute(name: str, values: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    # DataFusion is imported with the first such function.
    from lance_sql.catalog.functions import compute

    return compute(name, values)


external.provide(_compute)


class SqlDataset(DatasetVersion):
    """A dataset of the engine whose operations compute any SQL expression."""

    @staticmethod
    def _compiler(text: str, schema: pa.Schema) -> Any:
        return compile_value(text, schema, whole_quotients=True)
