"""Input data as an Arrow schema and a stream of batches.

Arrow objects, data frames, plain Python values and files are accepted. Libraries are recognized by the type
of the object, so none of them is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from lance_engine.errors import InvalidArgumentError, LanceError, SchemaMismatchError
from lance_engine.write.files import open_files

ACCEPTED = (
    "a pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner; an iterable of record batches; a "
    "pandas or Polars data frame; a DuckDB relation; a dict of columns; a list of dicts; the path or glob of "
    "Parquet, CSV, NDJSON or Arrow files; any object with __arrow_c_stream__"
)


def open_source(data: Any, like: pa.Schema | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The Arrow schema and the batches of `data`; InvalidArgumentError lists the accepted kinds.

    Types are inferred if `data` has none (dicts, CSV, NDJSON), unless `like` has a column of that name.
    """
    source = _as_arrow(data, like)
    if isinstance(source, pa.RecordBatch):
        return source.schema, iter([source])
    if isinstance(source, pa.Table):
        return source.schema, iter(source.to_batches())
    if isinstance(source, pa.RecordBatchReader):
        return source.schema, iter(source)
    if not isinstance(source, Iterable) or isinstance(source, bytes | bytearray | memoryview):
        raise _unsupported(data)
    items = iter(source)
    first = next(items, None)
    if first is None:
        raise SchemaMismatchError(
            "Cannot infer the schema of an empty iterable",
            remedy="Pass a pyarrow Table with a schema and no rows",
        )
    if isinstance(first, Mapping):
        table = _from_rows(chain([first], items), like)
        return table.schema, iter(table.to_batches())
    if not _holds_batches(first):
        raise _unsupported(data, f" of {type(first).__name__}")
    batches = _batches(chain([first], items), data)
    beginning = next(batches, None)
    if beginning is None:  # the first tables have no rows
        return pa.table(first).schema, iter(())
    return beginning.schema, chain([beginning], batches)


def _as_arrow(data: Any, like: pa.Schema | None) -> Any:
    """Arrow data for known objects; other objects unchanged."""
    if isinstance(data, pa.RecordBatch | pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, str | os.PathLike):
        return open_files(os.fspath(data), like=like).reader
    if isinstance(data, Mapping):
        return _from_columns(data, like)
    kind = type(data)
    library = kind.__module__.partition(".")[0]
    if (library, kind.__name__) == ("pandas", "DataFrame"):
        return _from_pandas(data)
    if (library, kind.__name__) == ("polars", "LazyFrame"):
        return _from_lazy_frame(data)
    if library == "pyarrow" and hasattr(data, "scanner"):  # a dataset
        data = data.scanner()
    if library == "pyarrow" and hasattr(data, "to_reader"):  # a scanner of a dataset
        return data.to_reader()
    if library == "pyarrow" and hasattr(data, "iter_batches"):  # a Parquet file
        return pa.RecordBatchReader.from_batches(data.schema_arrow, data.iter_batches())
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, type):
        return _from_stream(data)
    return data


def _from_stream(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError) as error:  # a stream of values without columns
        raise _unsupported(data, f" ({error})") from error


def _from_columns(columns: Mapping[Any, Any], like: pa.Schema | None) -> pa.Table:
    if not columns:
        raise SchemaMismatchError("The dict has no columns", remedy="Pass a dict of columns: {'id': [1, 2]}")
    arrays = {}
    for name, values in columns.items():
        if not isinstance(name, str):
            raise InvalidArgumentError(
                f"Column names must be strings, not {name!r}", remedy="Rename the key of the dict"
            )
        arrays[name] = _column(name, values, like)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name}: {count:,}" for name, count in list(lengths.items())[:5])
        raise SchemaMismatchError(
            f"The columns have different numbers of values ({shown})", remedy="Use lists of the same length"
        )
    return pa.table(arrays)


def _column(name: str, values: Any, like: pa.Schema | None) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidArgumentError(
            f"A column must be a list or an array of values, not {type(values).__name__}",
            column=name,
            remedy="For one row, pass a list: [{...}]",
        )
    kind = like.field(name).type if like is not None and name in like.names else None
    try:
        if isinstance(values, np.ndarray) and values.ndim == 2:
            items = pa.array(np.ascontiguousarray(values).reshape(-1))
            return pa.FixedSizeListArray.from_arrays(items, values.shape[1])
        ready = isinstance(values, Sequence | np.ndarray) or hasattr(values, "__array__")
        return pa.array(values if ready else list(values), kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _inconvertible(name, kind, error) from error


def _from_rows(rows: Iterable[Any], like: pa.Schema | None) -> pa.Table:
    """Rows as dicts; missing keys become null."""
    kept = list(rows)
    names: dict[Any, None] = {}
    for number, row in enumerate(kept):
        if not isinstance(row, Mapping):
            raise InvalidArgumentError(
                f"Row {number} is not a dict but {type(row).__name__}", remedy="Pass one dict per row"
            )
        names.update(dict.fromkeys(row))
    if not names:
        raise SchemaMismatchError("The rows have no columns", remedy="Pass one dict per row")
    return _from_columns({name: [row.get(name) for row in kept] for name in names}, like)


def _from_pandas(frame: Any) -> pa.Table:
    """The columns of a data frame. A named index becomes a column, an unnamed one is left out."""
    named = all(name is not None for name in frame.index.names)
    try:
        return pa.Table.from_pandas(frame, preserve_index=named).replace_schema_metadata(None)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaMismatchError(
            "The data frame cannot be converted to Arrow: " + "; ".join(map(str, error.args)),
            remedy="Give the column values of one type",
        ) from error


def _from_lazy_frame(frame: Any) -> pa.RecordBatchReader:
    """The rows of a lazy frame as they are computed, not all at once."""
    schema = frame.collect_schema().to_frame().to_arrow().schema
    batches = (batch for part in frame.collect_batches() for batch in part.to_arrow().to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _holds_batches(item: Any) -> bool:
    return isinstance(item, pa.RecordBatch | pa.Table) or hasattr(item, "__arrow_c_stream__")


def _batches(items: Iterable[Any], data: Any) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif _holds_batches(item):
            yield from pa.table(item).to_batches()
        else:
            raise _unsupported(data, f" with a {type(item).__name__}")


def _inconvertible(name: str, kind: pa.DataType | None, error: Exception) -> LanceError:
    what = "one Arrow type" if kind is None else f"{kind}, the type of the column in the dataset"
    return SchemaMismatchError(
        f"The values cannot be converted to {what}: {error}",
        column=name,
        remedy="Convert them first, or pass a pyarrow Table with the types that you want",
    )


def _unsupported(data: Any, detail: str = "") -> LanceError:
    kind = type(data)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return InvalidArgumentError(f"Cannot write {name}{detail}", remedy=f"Pass {ACCEPTED}")
