"""JSON (indices, JSON): an index of another kind over the values of a path in JSON documents.

The files are those of the other kind, BTREE or BITMAP; the details message has the path and that kind. It
supports comparisons of ``json_get_int`` and similar functions with constants. Such indices are read, not
built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError, InvalidFilterError, UnsupportedFeatureError
from lance_engine.expr.json_functions import member_steps
from lance_engine.expr.tree import Column, Comparison, Function, In, Literal, Node
from lance_engine.expr.value_types import value_type
from lance_engine.format.pb import index_pb2
from lance_engine.index.bitmap import BITMAP
from lance_engine.index.btree import BTREE
from lance_engine.index.files import SegmentFiles, index_errors
from lance_engine.index.kind import RowFinder, RowFinderKind, U64Array, not_built

_GETTERS: Final = ("json_get_int", "json_get_float", "json_get_string", "json_get_bool")
_TARGETS: Final = {f"{kind.message}IndexDetails": kind for kind in (BTREE, BITMAP)}
# The type of all JSON columns for their indices: the indexed values have the type of the path.
_ANY: Final = pa.null()
# More rows than any table has: the index does not support the predicate.
_NOT_SERVED: Final = 1 << 62
_VALUES: Final = "values"


class JsonValues:
    """An open JSON segment."""

    def __init__(self, files: SegmentFiles) -> None:
        with index_errors(files.segment.name):
            details = index_pb2.JsonIndexDetails()
            try:
                details.ParseFromString(files.segment.details)
            except DecodeError as error:
                raise CorruptFileError("The details of the index are damaged") from error
            target = _TARGETS.get(details.target_details.type_url.rpartition(".")[2])
            if target is None:
                raise UnsupportedFeatureError("This kind of JSON index is not supported")
            try:
                self._steps = member_steps(details.path)
            except InvalidFilterError as error:
                raise UnsupportedFeatureError(
                    f"The JSON path {details.path[:100]!r} is not supported"
                ) from error
        self._target: RowFinder = target.open(files)

    @property
    def nbytes(self) -> int:
        return self._target.nbytes

    @property
    def value_type(self) -> pa.DataType:
        return _ANY

    @property
    def statistics(self) -> Mapping[str, int]:
        return self._target.statistics

    def estimate(self, node: Node, rows: int) -> int:
        served = self._on_values(node)
        return _NOT_SERVED if served is None else self._target.estimate(served, rows)

    def find(self, node: Node) -> U64Array:
        served = self._on_values(node)
        return np.empty(0, dtype=np.uint64) if served is None else self._target.find(served)

    def entries(self) -> Iterator[pa.RecordBatch]:
        return self._target.entries()

    def _on_values(self, node: Node) -> Node | None:
        """The predicate on the values of the index; None if it refers to another path or type."""
        getter = _getter(node)
        if getter is None or member_steps(_path(getter)) != self._steps:
            return None
        kind = self._target.value_type
        # Requests for another type get converted values.
        if value_type(kind) != value_type(getter.type):
            return None
        values = Column((_VALUES,), kind)
        if isinstance(node, Comparison) and isinstance(node.right, Literal):
            return Comparison(node.op, values, Literal(node.right.value.cast(kind)))
        return In(values, node.values.cast(kind)) if isinstance(node, In) else None


def answers(node: Node) -> bool:
    """Whether a predicate compares a value in JSON with constants."""
    getter = _getter(node)
    if getter is None:
        return False
    try:
        member_steps(_path(getter))
    except InvalidFilterError:
        return False
    return isinstance(node, In) or (
        isinstance(node, Comparison) and isinstance(node.right, Literal) and not node.right.is_null
    )


def _getter(node: Node) -> Function | None:
    """The function whose result a predicate compares."""
    operand = node.left if isinstance(node, Comparison) else node.operand if isinstance(node, In) else None
    if not isinstance(operand, Function) or operand.name not in _GETTERS or len(operand.arguments) != 2:
        return None
    column, path = operand.arguments
    is_path = isinstance(path, Literal) and isinstance(path.value.as_py(), str)
    return operand if isinstance(column, Column) and is_path else None


def _path(getter: Function) -> str:
    path = getter.arguments[1]
    assert isinstance(path, Literal)
    return str(path.value.as_py())


JSON: Final = RowFinderKind(
    name="json",
    message="Json",
    newest=0,
    supports=lambda kind: False,
    holds_addresses=lambda version: False,
    stable_version=0,
    open=JsonValues,
    build=not_built,
    answers=answers,
    entry_type=lambda kind: _ANY,
    is_exact=False,
)
