"""The result table of a search: columns of the rows found, and computed columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.scan.system import ROW_ID
from lance_engine.scan.take import take

if TYPE_CHECKING:
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot


def answer_names(
    snapshot: Snapshot, columns: Sequence[str] | None, computed: Sequence[str], with_row_id: bool
) -> list[str]:
    """The requested columns, followed by the computed ones that are not included."""
    names = list(dict.fromkeys(snapshot.schema.names if columns is None else columns))
    names += [name for name in computed if name not in names]
    if with_row_id and ROW_ID not in names:
        names.append(ROW_ID)
    return names


def computed_column(name: str, values: npt.NDArray[Any]) -> tuple[pa.Field, pa.Array]:
    """A computed column with a value in every row."""
    array = pa.array(values)
    return pa.field(name, array.type, nullable=False), array


def answer_table(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    names: Sequence[str],
    ids: npt.NDArray[np.uint64],
    computed: Mapping[str, tuple[pa.Field, pa.Array]],
) -> pa.Table:
    """The columns `names` of the rows with these ids, in their order; computed columns are not read."""
    computed = {**computed, ROW_ID: computed_column(ROW_ID, ids)}
    stored = [name for name in names if name not in computed]
    rows = take(snapshot, reader_for, ids, stored) if stored else None
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for name in names:
        if name in computed:
            field, values = computed[name]
        else:
            assert rows is not None
            # The fields of a struct are returned in one column, at the position of the first.
            name = name if name in rows.schema.names else name.split(".")[0]
            field, values = rows.schema.field(name), rows.column(name)
            if any(known.name == name for known in fields):
                continue
        fields.append(field)
        arrays.append(values)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
