"""The dataset class for statements: without the pyarrow interface, whose import takes longer than a query."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.expr import provide_functions

from lance_sql.catalog.values import DuckDBCompiler
from lance_sql.types.sources import stored_source


def _compute(name: str, values: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    # DataFusion is imported when such a function is first used.
    from lance_sql.catalog.functions import compute

    return compute(name, values)


provide_functions(_compute)


class SqlDataset(DatasetVersion):
    """A dataset of the engine whose operations accept any SQL expression."""

    _compiler = DuckDBCompiler()
    _source = staticmethod(stored_source)
