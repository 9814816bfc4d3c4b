"""Random changes to bytes and protobuf messages, often to numbers at which code takes another branch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

EDGES = [
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    1023,
    1024,
    1025,
    4096,
    32767,
    32768,
    65535,
    65536,
]
EDGES += [2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**48, 2**62, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1]
MOST_BYTES = 64 << 10

_SIGNED = (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64)
_WIDE = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)


def mutate_bytes(rng: random.Random, data: bytes, donor: bytes = b"") -> bytes:
    """A copy with one change; it may take a piece of `donor`."""
    copy = bytearray(data)
    if not copy:
        return rng.randbytes(rng.choice([1, 2, 8, 40]))
    # The start of a buffer is where its own lengths and widths stand.
    at = rng.randrange(len(copy) if rng.random() < 0.6 else min(len(copy), 32))
    match rng.randrange(9):
        case 0:
            copy[at] ^= 1 << rng.randrange(8)
        case 1:
            copy[at] = rng.choice([0, 1, 127, 128, 254, 255, rng.randrange(256)])
        case 2:
            size = rng.choice([2, 4, 8])
            at -= at % size if rng.random() < 0.7 else 0
            number = rng.choice(EDGES) % (1 << 8 * size)
            copy[at : at + size] = number.to_bytes(size, "little")
        case 3:
            size = rng.choice([1, 2, 4, 8])
            at -= at % size
            number = int.from_bytes(copy[at : at + size], "little") + rng.choice([-8, -2, -1, 1, 2, 8])
            copy[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
        case 4:
            del copy[at : at + rng.choice([1, 2, 4, 8, 64, 1024])]
        case 5:
            copy[at:at] = rng.choice([bytes(rng.choice([1, 8, 64])), rng.randbytes(8)])
        case 6:
            size = rng.choice([4, 8, 16, 64])
            other = rng.randrange(len(copy))
            copy[at : at + size] = copy[other : other + size]
        case 7:
            del copy[at:]
        case _:
            other = rng.randrange(len(donor)) if donor else 0
            piece = donor[other : other + rng.choice([2, 8, 64, 512])]
            copy[at : at + len(piece)] = piece
    return bytes(copy[:MOST_BYTES])


def mutate_message(rng: random.Random, data: bytes, kind: type[Message], donor: bytes = b"") -> bytes:
    """A serialised message of type `kind` with one field changed, or a part taken from `donor`."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return mutate_bytes(rng, data, donor)
    parts = message_parts(message)
    part = rng.choice(parts)
    fields = list(part.DESCRIPTOR.fields)
    if not fields:
        return mutate_bytes(rng, data, donor)
    present = [field for field, _ in part.ListFields()]
    field = rng.choice(present if present and rng.random() < 0.7 else fields)
    other = kind()
    try:
        other.ParseFromString(donor)
    except DecodeError:
        other = kind()
    try:
        _change(rng, part, field, [*message_parts(other), *parts])
        return message.SerializeToString()
    except (ValueError, TypeError, RecursionError):
        return mutate_bytes(rng, data, donor)


def message_parts(message: Message) -> list[Any]:
    """The message and all messages inside of it."""
    found: list[Any] = [message]
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for each in value if field.is_repeated else [value]:
            found += message_parts(each)
    return found


def _change(rng: random.Random, part: Any, field: FieldDescriptor, donors: Sequence[Any]) -> None:
    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        part.ClearField(name)
        return
    if rng.random() < 0.15:
        part.ClearField(name)
        return
    if field.message_type is not None:
        fitting = [each for each in donors if each.DESCRIPTOR is field.message_type]
        values = getattr(part, name)
        if field.is_repeated:
            if len(values) and rng.random() < 0.4:
                del values[rng.randrange(len(values))]
                return
            target = values.add()
        else:
            target = values
            target.SetInParent()
        if fitting:
            source = rng.choice(fitting)
            if source is not target:
                target.CopyFrom(type(source).FromString(source.SerializeToString()))
        return
    if field.is_repeated:
        values = getattr(part, name)
        if len(values) and rng.random() < 0.7:
            place = rng.randrange(len(values))
            if rng.random() < 0.3:
                del values[place]
            else:
                values[place] = _scalar(rng, field, values[place])
        else:
            values.append(_scalar(rng, field, values[-1] if len(values) else field.default_value or 0))
        return
    setattr(part, name, _scalar(rng, field, getattr(part, name)))


def _scalar(rng: random.Random, field: FieldDescriptor, value: Any) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return not value
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice([0.0, -1.0, float("inf"), float("nan"), 1e300])
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return mutate_bytes(rng, value or b"")
        return rng.choice(["", value + "x" if value else "x", value[:-1] if value else "", "../x", "\0"])
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return rng.randrange(9)
    bits = 64 if kind in _WIDE else 32
    number = int(value) + rng.choice([-8, -1, 1, 8]) if rng.random() < 0.4 else rng.choice(EDGES)
    number %= 1 << bits
    return number - (1 << bits) if kind in _SIGNED and number >> (bits - 1) else number
