"""The dataset as statements see it: without the pyarrow face, which takes longer to import than a query."""

from __future__ import annotations

from typing import Any

import lance_engine.dataset
import pyarrow as pa

from lance_sql.catalog.values import compile_value


class Dataset(lance_engine.dataset.Dataset):
    """A dataset of the engine whose operations compute any SQL expression."""

    @staticmethod
    def _compiler(text: str, schema: pa.Schema) -> Any:
        return compile_value(text, schema)
