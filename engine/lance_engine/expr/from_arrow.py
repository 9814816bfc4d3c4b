"""Converts pyarrow.compute.Expression to a filter tree, without pyarrow.dataset.

An expression pickles as an Arrow IPC file (``Expression.__reduce__``): the schema's metadata lists the tree
as ordered key-value pairs (``call``/``field_ref``/``literal``/``options``/``end``), and column *n* of its one
row holds literal or options *n*. Keys repeat, so the pairs are read through the Arrow C data interface
and not from ``schema.metadata``, a mapping.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError, LanceError
from lance_engine.expr import build, operations
from lance_engine.expr.arithmetic import arithmetic
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
#: Associative functions, whose chains are a single call.
_CHAINS = ("and_kleene", "or_kleene", "and", "or")


def from_arrow(expression: pc.Expression, schema: pa.Schema) -> Node:
    """The predicate of a pyarrow `expression` over the columns of `schema`.

    It is evaluated with SQL's logic, which engines that push expressions down expect: NaN is the largest
    value, and ``isin`` is unknown for null. Functions without their own node type call pyarrow's.
    Raises `InvalidFilterError`.
    """
    file = pa.ipc.open_file(pickled(expression))
    row = file.get_batch(0)
    try:
        return build.require_boolean(_read(_ordered_metadata(file.schema), row, schema))
    except LanceError as error:
        error.at(filter=str(expression)[:500])
        raise


def pickled(expression: pc.Expression) -> pa.Buffer:
    """The bytes of an expression, which distinguish literals that Arrow compares as equal: 0.0 and -0.0.

    Raises `InvalidFilterError`.
    """
    try:
        data: pa.Buffer = expression.__reduce__()[1][0]
    except pa.ArrowNotImplementedError as error:
        raise InvalidFilterError(
            f"Cannot convert the expression {expression}: {error}",
            remedy="Refer to columns by name: pc.field('a', 'b')",
        ) from error
    return data


class _CSchemaHead(ctypes.Structure):
    """The first members of struct ArrowSchema of the Arrow C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _ordered_metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """The key-value metadata of a schema in order, with repeated keys."""
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


@dataclass(slots=True)
class _Open:
    """A call whose end has not been read yet."""

    name: str
    arguments: list[Node] = field(default_factory=list)
    options: pa.Array | None = None


def _read(pairs: Iterable[tuple[str, str]], row: pa.RecordBatch, schema: pa.Schema) -> Node:
    """The node that the pairs of an expression describe, without recursion: chains can be thousands deep."""
    pairs = iter(pairs)
    pending = [_Open("")]
    for key, value in pairs:
        innermost = pending[-1]
        if key == "call":
            pending.append(_Open(value))
        elif key == "end":
            pending.pop()
            if innermost.name in _CHAINS and innermost.name == pending[-1].name:
                pending[-1].arguments += innermost.arguments
            else:
                node = _call(innermost.name, innermost.arguments, innermost.options, schema)
                pending[-1].arguments.append(node)
        elif key == "options":
            innermost.options = row.column(int(value))
        elif key == "literal":
            innermost.arguments.append(_literal(row.column(int(value))[0]))
        elif key == "field_ref":
            innermost.arguments.append(build.column(schema, [value]))
        elif key == "nested_field_ref":
            names = [name for _, name in islice(pairs, int(value))]
            innermost.arguments.append(build.column(schema, names))
        else:
            raise InvalidFilterError(
                f"Unknown entry in a pyarrow expression: {key!r}", remedy="Write the filter as SQL text"
            )
    (node,) = pending[0].arguments
    return node


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
            return operations.compare(_COMPARISONS[name], left, right)
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
            nans = [build.compare("=", operand, Literal(pa.scalar(float("nan"))))] if nan else []
            return build.disjunction([build.is_null(operand), *nans])
        case "is_in", [operand] if held is not None:
            return build.member(operand, _value_set(held["value_set"]))
        case "if_else", [IsNull(tested, True), In(operand) as membership, Literal(value)] if (
            tested == operand and not value.is_valid
        ):
            # DuckDB's way to express that IN is unknown for null; ours already is.
            return membership
        case _, [operand] if name in _MATCHES and held is not None:
            return _match(name, operand, held)
        case "cast", [operand] if held is not None:
            return build.cast(operand, held["to_type"].type)
        case "struct_field", [Column(parts)] if held is not None:
            return _field(parts, held, schema)
        case _, [left, right] if name.removesuffix("_checked") in _ARITHMETIC:
            return arithmetic(_ARITHMETIC[name.removesuffix("_checked")], left, right)
        case (("divide" | "divide_checked"), [left, right]):
            whole = at.is_integer(left.type) and at.is_integer(right.type)
            return arithmetic("//" if whole else "/", left, right)
        case _:
            return operations.function(name, arguments, None if options is None else _serialized(options))


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
    return operations.match(
        kind, operand, Literal(pa.scalar(text)), escape="\\" if kind in ("like", "ilike") else None
    )


def _field(parts: tuple[str, ...], options: pa.StructScalar, schema: pa.Schema) -> Node:
    """The struct field that options name as a dot path, ``.name`` or ``[index]`` per level."""
    path = options["field_ref"].as_py()
    column = build.column(schema, parts)
    resolutions = list(_resolutions(column.stored_type, path))
    if len(resolutions) != 1:
        how = "does not name" if not resolutions else "matches more than one of"
        raise InvalidFilterError(
            f"{path!r} {how} the fields of {column}", remedy="Refer to fields by name: pc.field('a', 'b')"
        )
    return build.column(schema, [*parts, *resolutions[0]])


def _resolutions(kind: pa.DataType, path: str) -> Iterator[tuple[str, ...]]:
    """The possible fields for a dot path; pyarrow does not escape dots in names."""
    if not path:
        yield ()
        return
    for index in range(kind.num_fields if at.is_struct(kind) else 0):
        child = kind.field(index)
        for start in (f".{child.name}", f"[{index}]"):
            if path.startswith(start) and path[len(start) : len(start) + 1] in ("", ".", "["):
                for rest in _resolutions(child.type, path[len(start) :]):
                    yield child.name, *rest


def _serialized(options: pa.Array) -> bytes:
    """Function options as `FunctionOptions.deserialize` takes them: an IPC file of one struct."""
    batch = pa.RecordBatch.from_arrays([options], names=[""])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
