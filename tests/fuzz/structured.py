"""Changes of one field of a file, while lengths, tables of positions and footers fit: decoders go deep.

Messages are changed as they are on the wire, without their types: those inside of others, such as details of
indices and encodings of pages, are found by trying.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from fuzz_mutation import EDGES, mutate_bytes
from google.protobuf.internal import decoder, encoder
from google.protobuf.message import DecodeError
from lance_engine.errors import LanceError
from lance_engine.format.deletion import decode_deletions, encode_deletions
from lance_engine.format.fragment import DeletionKind
from lance_engine.format.pb import file_v2_pb2, table_pb2
from whole_datasets import changed_json, files_of

MAGIC: Final = b"LANC"
_FOOTER: Final = struct.Struct("<QQQIIHH4s")
_ENTRY: Final = struct.Struct("<QQ")
_TAIL: Final = struct.Struct("<qHH4s")
#: The parts of a manifest file before the manifest: the fields that say where they are.
SECTIONS: Final = ("index_section", "transaction_section")
_HIGHEST: Final = 200  # number of a field that is still believed
#: Which files change: those of which decoders read most.
FOLDERS: Final = (*["_versions"] * 3, *["data"] * 5, *["_indices"] * 4, "_deletions", "_transactions", "tree")

#: Texts that lead out of the dataset, or into a terminal, a statement or a URL.
TEXTS: Final = (
    "",
    "..",
    "../../x",
    "/etc/passwd",
    "file:///etc/passwd",
    "s3://b/x",
    "http://169.254.169.254/latest",
    "%2e%2e/x",
    "a\0b",
    "a\nb",
    "\x1b[2J",
    "'; DROP TABLE t; --",
    "x" * 5000,
    "é",
)

#: One field on the wire: its number, its type (0 a number, 1 and 5 fixed, 2 bytes), and its value.
Field = tuple[int, int, Any]


def fields(data: bytes) -> list[Field] | None:
    """The fields of a message; None if the bytes are none."""
    found: list[Field] = []
    at = 0
    try:
        while at < len(data):
            key, at = decoder._DecodeVarint(data, at)
            number, kind = key >> 3, key & 7
            if not 0 < number <= _HIGHEST:
                return None
            if kind == 0:
                value, at = decoder._DecodeVarint(data, at)
            elif kind in (1, 5):
                size = 8 if kind == 1 else 4
                value, at = data[at : at + size], at + size
            elif kind == 2:
                size, at = decoder._DecodeVarint(data, at)
                value, at = data[at : at + size], at + size
            else:
                return None
            if at > len(data):
                return None
            found.append((number, kind, value))
    except (IndexError, decoder._DecodeError):
        return None
    return found


def as_message(content: Sequence[Field]) -> bytes:
    parts = []
    for number, kind, value in content:
        parts.append(encoder._VarintBytes(number << 3 | kind))
        parts.append(encoder._VarintBytes(value) if kind == 0 else value)
        if kind == 2:
            parts[-1:] = [encoder._VarintBytes(len(value)), value]
    return b"".join(parts)


def _numbers(content: Sequence[Field]) -> Iterator[int]:
    """All numbers of a message and of those inside."""
    for _, kind, value in content:
        if kind == 0:
            yield value
        elif kind == 2:
            yield from _numbers(fields(value) or [])
            yield from _packed(value) or []


@lru_cache(4096)
def _numbers_of(message: bytes) -> tuple[int, ...]:
    """The same files are changed again and again."""
    return tuple(_numbers(fields(message) or []))


def _packed(data: bytes) -> list[int] | None:
    """The numbers of a packed repeated field."""
    found, at = [], 0
    try:
        while at < len(data):
            value, at = decoder._DecodeVarint(data, at)
            found.append(value)
    except (IndexError, decoder._DecodeError):
        return None
    return found


def number(chance: random.Random, value: int, others: Sequence[int]) -> int:
    """Another number: its neighbour, one at which code takes another branch, or one of the same file."""
    draw = chance.random()
    if draw < 0.3:
        return max(0, value + chance.choice([-64, -8, -1, 1, 8, 64]))
    if draw < 0.6 and others:
        return chance.choice(others)
    return chance.choice(EDGES)


def changed_message(chance: random.Random, data: bytes, others: Sequence[int] = ()) -> bytes:
    """A message with one field changed, dropped, written twice or in another place."""
    content = fields(data)
    if not content:
        return mutate_bytes(chance, data)
    others = others or _numbers_of(data)
    # Names of types are what their messages are found by: most changes are beyond them.
    place = max(chance.randrange(len(content)) for _ in range(2))
    field, kind, value = content[place]
    draw = chance.random()
    if draw < 0.07:
        del content[place]
    elif draw < 0.14:
        content.insert(chance.randrange(len(content) + 1), content[place])
    elif draw < 0.21:
        other = chance.randrange(len(content))
        content[place], content[other] = content[other], content[place]
    elif draw < 0.23:
        content[place] = (chance.randrange(1, 30), kind, value)
    elif kind == 0:
        content[place] = (field, kind, number(chance, value, others) % (1 << 64))
    elif kind == 2:
        content[place] = (field, kind, _changed_bytes(chance, value, others))
    else:
        content[place] = (field, kind, chance.choice([bytes(len(value)), b"\xff" * len(value)]))
    return as_message(content)


def _changed_bytes(chance: random.Random, value: bytes, others: Sequence[int]) -> bytes:
    """What stands in a field of bytes: a message, a text, numbers, or something else."""
    if value.isascii() and value.decode().isprintable() and chance.random() < 0.8:
        return chance.choice(TEXTS).encode()
    if fields(value) and chance.random() < 0.9:
        return changed_message(chance, value, others)
    packed = _packed(value)
    if packed and len(packed) < 10_000 and chance.random() < 0.8:
        place = chance.randrange(len(packed))
        if chance.random() < 0.2:
            del packed[place]
        else:
            packed[place] = number(chance, packed[place], others) % (1 << 64)
        return b"".join(map(encoder._VarintBytes, packed))
    return mutate_bytes(chance, value)


def _section(content: bytes, start: int) -> bytes:
    length = int.from_bytes(content[start : start + 4], "little")
    return content[start + 4 : start + 4 + length]


def _with_length(message: bytes) -> bytes:
    return len(message).to_bytes(4, "little") + message


def rewritten(content: bytes, edit: Callable[[dict[str, Any]], None]) -> bytes:
    """A manifest file after `edit` has changed its parts: messages or bytes by name, `manifest` the last one.

    Positions of the other parts follow from what they have become.
    """
    start, major, minor, _ = _TAIL.unpack(content[-16:])
    manifest = table_pb2.Manifest.FromString(_section(content, start))
    parts: dict[str, Any] = {
        name: _section(content, getattr(manifest, name)) for name in SECTIONS if manifest.HasField(name)
    }
    position = 0
    for name, part in parts.items():
        setattr(manifest, name, position)
        position += 4 + len(part)
    parts["manifest"] = manifest
    edit(parts)
    out = b""
    for name, part in parts.items():
        if name != "manifest":
            setattr(manifest, name, len(out))
        position = len(out)
        data = part if isinstance(part, bytes) else part.SerializeToString()
        out += len(data).to_bytes(4, "little") + data
    return out + _TAIL.pack(position, major, minor, MAGIC)


def changed_manifest(chance: random.Random, content: bytes) -> bytes:
    """A manifest file with one field changed in the manifest, the indices or the transaction."""

    def edit(parts: dict[str, Any]) -> None:
        name = chance.choice([*parts, "manifest"])
        part = parts[name]
        parts[name] = changed_message(chance, part if isinstance(part, bytes) else part.SerializeToString())

    return rewritten(content, edit)


def without_sizes(content: bytes) -> bytes:
    """A manifest file that does not say how large the other files are, which would give them away."""

    def edit(parts: dict[str, Any]) -> None:
        for fragment in parts["manifest"].fragments:
            for file in fragment.files:
                file.file_size_bytes = 0
        if "index_section" in parts:
            section = table_pb2.IndexSection.FromString(parts["index_section"])
            for index in section.indices:
                del index.files[:]
            parts["index_section"] = section

    return rewritten(content, edit)


def changed_first_version(chance: random.Random, content: bytes) -> bytes:
    """A data file of version 0.1 with another field of its metadata, or another cell of its page table."""
    start, major, minor, _ = _TAIL.unpack(content[-16:])
    metadata = _section(content, start)
    if chance.random() < 0.4:
        changed = _with_length(changed_message(chance, metadata))
        return content[:start] + changed + _TAIL.pack(start, major, minor, MAGIC)
    numbers = [value for value in _numbers_of(metadata) if value < start]
    table = chance.choice(numbers or [0])
    slot = table + 8 * chance.randrange(max(1, min(64, (start - table) // 8)))
    cells = [int.from_bytes(content[table + 8 * place :][:8], "little") for place in range(16)]
    value = number(chance, int.from_bytes(content[slot : slot + 8], "little"), cells)
    return content[:slot] + (value % (1 << 64)).to_bytes(8, "little") + content[slot + 8 :]


class Container:
    """A file of version 2 in parts: what is before the metadata, global buffers and metadata of columns."""

    def __init__(self, content: bytes) -> None:
        start, columns, buffers, num_buffers, num_columns, major, minor, _ = _FOOTER.unpack(content[-40:])

        def parts(table: int, count: int) -> list[bytes]:
            places = (_ENTRY.unpack_from(content, table + 16 * place) for place in range(min(count, 10_000)))
            return [content[at : at + size] for at, size in places]

        self.data = content[:start]
        self.buffers, self.columns = parts(buffers, num_buffers), parts(columns, num_columns)
        self._version = (major, minor)

    def content(self, change: Callable[[list[int]], None] = lambda _: None) -> bytes:
        """The file again; `change` may change the numbers of its footer."""
        out = bytearray(self.data)

        def put(parts: Sequence[bytes]) -> bytes:
            table = b""
            for part in parts:
                out.extend(b"\x48" * (-len(out) % 64))
                table += _ENTRY.pack(len(out), len(part))
                out.extend(part)
            return table

        buffers = put(self.buffers)
        first = len(out)
        columns = put(self.columns)
        numbers = [first, len(out), len(out) + len(columns), len(self.buffers), len(self.columns)]
        change(numbers)
        return bytes(out) + columns + buffers + _FOOTER.pack(*numbers, *self._version, MAGIC)


def with_changed_pages(content: bytes, column: int, change: Callable[[Any], None]) -> bytes:
    """A file in which the description of each page of a column was changed."""
    file = Container(content)
    message = file_v2_pb2.ColumnMetadata.FromString(file.columns[column])
    for page in message.pages:
        change(page)
    file.columns[column] = message.SerializeToString()
    return file.content()


def changed_container(chance: random.Random, content: bytes) -> bytes:
    """A file of version 2 with another field in its footer, its tables, a column or a global buffer."""
    file = Container(content)
    columns = file.columns
    places = [place for message in columns for place in _numbers_of(message)]
    draw = chance.random()
    if columns and draw < 0.75:
        column, other = chance.randrange(len(columns)), chance.randrange(len(columns))
        match int(draw / 0.15):
            case 0 | 1:
                columns[column] = changed_message(chance, columns[column], places)
            case 2 | 3:
                columns[column] = _changed_pages(chance, columns, column, len(file.data))
            case _ if draw < 0.63:
                columns[column], columns[other] = columns[other], columns[column]
            case _ if draw < 0.67:
                columns[column] = columns[other]
            case _ if draw < 0.71:
                del columns[column]
            case _:
                columns.insert(other, columns[column])
    elif file.buffers and draw < 0.95:
        which = chance.randrange(len(file.buffers))
        file.buffers[which] = changed_message(chance, file.buffers[which])

    def footer(numbers: list[int]) -> None:
        which = chance.randrange(5)
        numbers[which] = number(chance, numbers[which], list(numbers)) % (1 << (64 if which < 3 else 32))

    return file.content(footer) if draw >= 0.95 else file.content()


def _changed_pages(chance: random.Random, messages: Sequence[bytes], column: int, end: int) -> bytes:
    """The metadata of a column in which a page has another place, size, length or encoding."""
    message = file_v2_pb2.ColumnMetadata.FromString(messages[column])
    other = file_v2_pb2.ColumnMetadata.FromString(chance.choice(messages))
    if not message.pages or not other.pages:
        return changed_message(chance, messages[column])
    page, donor = chance.choice(message.pages), chance.choice(other.pages)
    match chance.randrange(8):
        case 0 if page.buffer_offsets:
            place = chance.randrange(len(page.buffer_offsets))
            elsewhere = [*donor.buffer_offsets, chance.randrange(end + 1), end, end + 64, 0]
            page.buffer_offsets[place] = chance.choice(elsewhere)
        case 1 if page.buffer_sizes:
            place = chance.randrange(len(page.buffer_sizes))
            page.buffer_sizes[place] = number(chance, page.buffer_sizes[place], list(donor.buffer_sizes))
        case 2:
            page.length = number(chance, page.length, [donor.length])
        case 3:
            page.priority = number(chance, page.priority, [donor.priority])
        case 4:
            page.encoding.CopyFrom(donor.encoding)
        case 5:
            message.pages.append(donor)
        case 6:
            message.pages.remove(page)
        case _:
            page.CopyFrom(donor)
    return message.SerializeToString()


def changed_deletions(chance: random.Random, path: Path, content: bytes) -> bytes:
    """A deletion file that names another row, also one twice or one that no fragment has, or fewer rows."""
    kind = DeletionKind.BITMAP if path.suffix == ".bin" else DeletionKind.ARROW
    offsets = decode_deletions(content, kind, 1 << 32).within.tolist()
    if not offsets:
        return mutate_bytes(chance, content)
    place = chance.randrange(len(offsets))
    if chance.random() < 0.2:
        del offsets[place]
    else:
        offsets[place] = number(chance, offsets[place], offsets) % (1 << 32)
    return encode_deletions(np.array(offsets, dtype=np.uint32), kind)


def prepare(sound: Path) -> None:
    """Leave sizes of files out of all manifests below a folder."""
    for path in sound.rglob("*.manifest"):
        path.write_bytes(without_sizes(path.read_bytes()))


def change_file(chance: random.Random, place: Path) -> str:
    """Change one to three fields of a file of the dataset; returns which file."""
    files = files_of(place)
    wanted = chance.choice(FOLDERS)
    chosen = [path for path in files if path.relative_to(place).parts[0] == wanted] or files
    if wanted == "_versions" and chance.random() < 0.7:
        chosen = [min(path for path in chosen if path.suffix == ".manifest")]  # names count down
    path = chance.choice(chosen)
    content = path.read_bytes()
    path.unlink()
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        try:
            content = _changed(chance, path, content)
        except (struct.error, ValueError, IndexError, OverflowError, MemoryError, DecodeError, LanceError):
            break  # a change before made it so that its parts cannot be found
    path.write_bytes(content)
    return f"{path.relative_to(place)} changed"


def _changed(chance: random.Random, path: Path, content: bytes) -> bytes:
    if path.suffix == ".manifest":
        return changed_manifest(chance, content)
    if path.suffix == ".txn":
        return changed_message(chance, content)
    if path.suffix == ".json":
        return changed_json(chance, content)
    if path.parent.name == "_deletions" and chance.random() < 0.8:
        return changed_deletions(chance, path, content)
    if content[-4:] != MAGIC:
        return mutate_bytes(chance, content)
    first = content[-8:-4] in (b"\0\0\1\0", b"\0\0\2\0")
    return changed_first_version(chance, content) if first else changed_container(chance, content)
