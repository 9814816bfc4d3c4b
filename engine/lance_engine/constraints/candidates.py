"""Rows of a version that may have one of some keys: indices and zone maps exclude most of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError
from lance_engine.expr import build
from lance_engine.expr import tree as nodes
from lance_engine.expr.tree import Node
from lance_engine.scan.partial import ReaderFor, rows_that_may_pass, scan
from lance_engine.table.snapshot import Snapshot

# Keys of fewer rows are read faster without other threads.
_FEW_ROWS: Final = 1 << 21
# Maximum number of keys that are looked up individually in indices and zone maps; more use their range.
_FEW_KEYS: Final = 2000


class KeyBounds:
    """What the keys of some rows are: the values of each column if they are few, otherwise their range."""

    def __init__(self, names: Sequence[str]) -> None:
        self._columns = {name: _Bounds() for name in names}

    def add(self, columns: Sequence[pa.Array]) -> None:
        """More keys, by column."""
        for bounds, column in zip(self._columns.values(), columns, strict=True):
            bounds.add(column)

    def filter(self, schema: pa.Schema) -> Node | None:
        """A condition that every row with one of the keys passes; None if unknown."""
        conditions = (bounds.filter(build.column(schema, [name])) for name, bounds in self._columns.items())
        known = [node for node in conditions if node is not None]
        return build.conjunction(known) if known else None


class _Bounds:
    """The values of one column."""

    def __init__(self) -> None:
        self._few: pa.Array | None = None
        self._range: pa.Array | None = None
        self._is_known = True

    def add(self, column: pa.Array) -> None:
        if getattr(column.type, "extension_name", "") == "arrow.uuid":
            column = column.storage  # which filters compare
        # Filters may compare other extension types by what they mean.
        if at.is_dictionary(column.type) or isinstance(column.type, pa.BaseExtensionType):
            self._is_known = False
        if not self._is_known or not len(column):
            return
        try:
            if at.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
                self._is_known = False  # NaN is outside of any bounds
                return
            if self._range is None:
                values = column if self._few is None else pa.concat_arrays([self._few, column])
                values = values.unique().drop_null()
                if len(values) <= _FEW_KEYS:
                    self._few = values
                    return
                self._few, column = None, values
            ends = _ends(column)
            self._range = ends if self._range is None else _ends(pa.concat_arrays([self._range, ends]))
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
            self._is_known = False

    def filter(self, key: Node) -> Node | None:
        if not self._is_known or (self._few is None and self._range is None):
            return None
        try:
            if self._range is None:
                return build.member(key, self._few)
            low, high = (nodes.Literal(self._range[place]) for place in (0, 1))
            return build.conjunction([build.compare(">=", key, low), build.compare("<=", key, high)])
        except (pa.ArrowNotImplementedError, InvalidFilterError):
            return None


def _ends(column: pa.Array) -> pa.Array:
    """The minimum and the maximum, exactly: Python's own values have no nanoseconds or year 10000."""
    extremes = pc.min_max(column)
    return pa.array([extremes["min"], extremes["max"]], extremes["min"].type)


def possible_rows(
    snapshot: Snapshot,
    columns: Sequence[str],
    filter: Node | None,
    reader_for: ReaderFor,
    fragments: Collection[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """All rows that pass `filter`, and some others; only of the `fragments` with these ids, if given."""
    if fragments is None:
        splits = None if filter is None else rows_that_may_pass(snapshot, filter, reader_for)
        rows = scan(snapshot, columns, splits=splits, reader_for=reader_for)
    elif filter is None:
        wanted = [fragment for fragment in snapshot.fragments if fragment.id in fragments]
        rows = scan(snapshot, columns, fragments=wanted, reader_for=reader_for)
    else:
        candidates = rows_that_may_pass(snapshot, filter, reader_for)
        splits = [split for split in candidates if split.fragment_id in fragments]
        rows = scan(snapshot, columns, splits=splits, reader_for=reader_for)
    return rows.read_here() if snapshot.num_rows <= _FEW_ROWS else rows.to_batches()
