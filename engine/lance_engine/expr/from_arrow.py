"""pyarrow.compute.Expression -> filter tree, without pyarrow.dataset.

An expression pickles as an Arrow IPC file (``Expression.__reduce__``): the schema's metadata lists the tree
as ordered key-value pairs (``call``/``field_ref``/``literal``/``options``/``end``), and column *n* of its one
row holds literal or options *n*. Keys repeat, so that the pairs are read through the Arrow C data interface
and not from ``schema.metadata``, a mapping.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError, LanceError
from lance_engine.expr import build
from lance_engine.expr.tree import Column, In, IsNull, Literal, Node
from lance_engine.expr.value_types import value_type

_COMPARISONS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_MATCHES = {
    "starts_with": "starts_with",
    "ends_with": "ends_with",
    "match_substring": "contains",
    "match_like": "like",
}
#: One level of the dot paths of struct_field: a name with escaped special characters, or an index.
_DOT_PATH = re.compile(r"\.(?P<name>(?:\\.|[^.\[\\])*)|\[(?P<index>\d+)\]")


def from_arrow(expression: pc.Expression, schema: pa.Schema) -> Node:
    """The predicate that a pyarrow `expression` states over the columns of `schema`.

    It is evaluated with SQL's logic, which engines that push expressions down expect: NaN is the greatest
    value, and ``isin`` is unknown for null. Functions without a node of their own are called as pyarrow's.
    Raises `InvalidFilterError`.
    """
    try:
        data = expression.__reduce__()[1][0]
    except pa.ArrowNotImplementedError as error:
        raise InvalidFilterError(
            f"The expression {expression} cannot be read: {error}",
            remedy="Refer to columns by name: pc.field('a', 'b')",
        ) from error
    file = pa.ipc.open_file(data)
    row = file.get_batch(0)
    try:
        return build.require_boolean(_Reader(_ordered_metadata(file.schema), row, schema).read())
    except LanceError as error:
        error.at(filter=str(expression)[:500])
        raise
    except RecursionError as error:
        raise InvalidFilterError(
            "The expression is nested too deeply", remedy="Use isin for long lists"
        ) from error


class _CSchemaHead(ctypes.Structure):
    """The first members of struct ArrowSchema of the Arrow C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _ordered_metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """The key-value metadata of a schema in order, repeated keys kept."""
    capsule = schema.__arrow_c_schema__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = _CSchemaHead.from_address(get_pointer(capsule, b"arrow_schema")).metadata
    if not address:
        return []

    def integer() -> int:
        nonlocal address
        value = ctypes.c_int32.from_address(address).value
        address += 4
        return value

    def text() -> str:
        nonlocal address
        length = integer()
        value = ctypes.string_at(address, length).decode()
        address += length
        return value

    return [(text(), text()) for _ in range(integer())]


class _Reader:
    """Reads the pairs of one expression from first to last."""

    def __init__(self, pairs: list[tuple[str, str]], row: pa.RecordBatch, schema: pa.Schema) -> None:
        self._pairs: Iterator[tuple[str, str]] = iter(pairs)
        self._row = row
        self._schema = schema

    def read(self) -> Node:
        return self._node(*next(self._pairs))

    def _node(self, key: str, value: str) -> Node:
        if key == "literal":
            return _literal(self._row.column(int(value))[0])
        if key == "field_ref":
            return build.column(self._schema, [value])
        if key == "nested_field_ref":
            return build.column(self._schema, [next(self._pairs)[1] for _ in range(int(value))])
        if key == "call":
            return self._call(value)
        raise InvalidFilterError(
            f"A pyarrow expression holds an unknown entry {key!r}", remedy="Use a SQL filter"
        )

    def _call(self, name: str) -> Node:
        arguments: list[Node] = []
        options: pa.Array | None = None
        for key, value in self._pairs:
            if key == "end":
                break
            if key == "options":
                options = self._row.column(int(value))
            else:
                arguments.append(self._node(key, value))
        return _call(name, arguments, options, self._schema)


def _literal(value: pa.Scalar) -> Literal:
    kind = value_type(value.type)
    if kind == value.type:
        return Literal(value)
    plain = value.value if isinstance(value, (pa.DictionaryScalar, pa.ExtensionScalar)) else value
    if plain is None or not plain.is_valid:
        return Literal(pa.scalar(None, kind))
    return Literal(plain if plain.type == kind else plain.cast(kind))


def _call(name: str, arguments: list[Node], options: pa.Array | None, schema: pa.Schema) -> Node:
    held: pa.StructScalar | None = None if options is None else options[0]
    match name, arguments:
        case _, [left, right] if name in _COMPARISONS:
            return build.compare(_COMPARISONS[name], left, right)
        case (("and_kleene" | "and"), _):
            return build.conjunction(arguments)
        case (("or_kleene" | "or"), _):
            return build.disjunction(arguments)
        case "invert", [operand]:
            return build.negate(operand)
        case "is_valid", [operand]:
            return build.is_null(operand, negated=True)
        case "is_null", [operand]:
            nan = held is not None and held["nan_is_null"].as_py() and at.is_floating(operand.type)
            found = [build.compare("=", operand, Literal(pa.scalar(float("nan"))))] if nan else []
            return build.disjunction([build.is_null(operand), *found])
        case "is_in", [operand] if held is not None:
            return build.member(operand, _value_set(held["value_set"]))
        case "if_else", [IsNull(tested, True), In(operand) as found, Literal(value)] if (
            tested == operand and not value.is_valid
        ):
            # How DuckDB says that IN is unknown for null, which our IN is by itself.
            return found
        case _, [operand] if name in _MATCHES and held is not None:
            return _match(name, operand, held)
        case "cast", [operand] if held is not None:
            return build.cast(operand, held["to_type"].type)
        case "struct_field", [Column(parts)] if held is not None:
            return _field(parts, held, schema)
        case _, [left, right] if name.removesuffix("_checked") in _ARITHMETIC:
            return build.arithmetic(_ARITHMETIC[name.removesuffix("_checked")], left, right)
        case (("divide" | "divide_checked"), [left, right]):
            whole = at.is_integer(left.type) and at.is_integer(right.type)
            return build.arithmetic("//" if whole else "/", left, right)
        case _:
            return build.function(name, arguments, None if options is None else _serialized(options))


def _value_set(values: Any) -> pa.Array:
    array = values.values if isinstance(values, (pa.ListScalar, pa.LargeListScalar)) else values
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if at.is_dictionary(array.type) else array


def _match(name: str, operand: Node, options: pa.StructScalar) -> Node:
    pattern = options["pattern"].as_py()
    text = pattern.decode() if isinstance(pattern, bytes) else pattern
    kind = _MATCHES[name]
    if options["ignore_case"].as_py():
        escaped = "".join(f"\\{character}" if character in "%_\\" else character for character in text)
        kind, text = (
            "ilike",
            {"like": text, "starts_with": f"{escaped}%", "ends_with": f"%{escaped}"}.get(
                kind, f"%{escaped}%"
            ),
        )
    return build.match(
        kind, operand, Literal(pa.scalar(text)), escape="\\" if kind in ("like", "ilike") else None
    )


def _field(parts: tuple[str, ...], options: pa.StructScalar, schema: pa.Schema) -> Node:
    """The struct field that options name as a dot path, ``.name`` or ``[index]`` per level."""
    column = build.column(schema, parts)
    for match in _DOT_PATH.finditer(options["field_ref"].as_py()):
        kind = column.stored_type
        name = re.sub(r"\\(.)", r"\1", match["name"]) if match["name"] is not None else None
        if name is None and at.is_struct(kind) and int(match["index"]) < kind.num_fields:
            name = kind.field(int(match["index"])).name
        column = build.column(schema, [*column.parts, match[0] if name is None else name])
    return column


def _serialized(options: pa.Array) -> bytes:
    """Function options as `FunctionOptions.deserialize` takes them: an IPC file of one struct."""
    batch = pa.RecordBatch.from_arrays([options], names=[""])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
