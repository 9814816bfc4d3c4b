"""The dataset class for statements: without the pyarrow interface, whose import takes longer than a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.expr import provide_functions

from lance_sql.catalog.values import compile_value


def _compute(name: str, values: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    # DataFusion is imported when such a function is first used.
    from lance_sql.catalog.functions import compute

    return compute(name, values)


provide_functions(_compute)


class SqlDataset(DatasetVersion):
    """A dataset of the engine whose operations accept any SQL expression."""

    @staticmethod
    def _compiler(text: str, schema: pa.Schema) -> Any:
        return compile_value(text, schema, whole_quotients=True)
