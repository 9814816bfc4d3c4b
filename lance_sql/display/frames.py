"""Tables as data frames of optional libraries."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from lance_engine.errors import UnsupportedTypeError

from lance_sql.errors import PackageNotInstalledError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The table as a pandas DataFrame."""
    _need("pandas", "pandas")
    with _conversion("pandas", table):
        return table.to_pandas()


def of_python_values(values: list[Any], dtype: str) -> pd.Series[Any]:
    """A column of a DataFrame."""
    pandas = _need("pandas", "pandas")
    if dtype == "float64":  # from integers of any size
        column: pd.Series[Any] = pandas.Series(values, dtype=object).astype(dtype)
    elif dtype.startswith("timedelta64"):
        column = pandas.Series(np.array(values, dtype))  # pandas 2 itself would count nanoseconds
    else:
        column = pandas.Series(values, dtype=dtype)
    return column


def to_polars(table: pa.Table) -> pl.DataFrame:
    """The table as a Polars DataFrame."""
    polars = _need("polars", "Polars")
    with _conversion("Polars", table):
        frame: pl.DataFrame = polars.DataFrame(table)
    return frame


@contextmanager
def _conversion(name: str, table: pa.Table) -> Iterator[None]:
    """Errors of another library in this block are about types or values that it does not have."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError, ValueError, OverflowError):
        raise  # the caller converts in another way
    except BaseException as error:  # panics of Rust are not even exceptions
        kinds = ", ".join(dict.fromkeys(str(kind) for kind in table.schema.types))
        raise UnsupportedTypeError(
            f"{name} cannot hold the result, whose columns are of the types {kinds}: {str(error)[:200]}",
            remedy="Cast the columns in the query, or use arrow()",
        ) from error


def _need(package: str, name: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise PackageNotInstalledError(
            f"{name} is not installed: {error}",
            remedy=f"Install it with: pip install {package}; to_table() and arrow() need only pyarrow",
        ) from None
