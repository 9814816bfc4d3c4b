"""Tables as data frames of optional libraries."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_sql.errors import PackageNotInstalledError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The table as a pandas DataFrame."""
    _need("pandas", "pandas")
    return table.to_pandas()


def to_polars(table: pa.Table) -> pl.DataFrame:
    """The table as a Polars DataFrame."""
    polars = _need("polars", "Polars")
    frame: pl.DataFrame = polars.DataFrame(table)
    return frame


def _need(package: str, name: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise PackageNotInstalledError(
            f"{name} is not installed: {error}",
            remedy=f"Install it with: pip install {package}; to_table() and arrow() need only pyarrow",
        ) from None
