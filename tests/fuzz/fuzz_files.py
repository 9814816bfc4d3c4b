"""Data files as inputs: with their structure, page by page, or as mere bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import handmade_files as handmade
import pyarrow as pa
from damage import damaged
from fuzz_mutation import EDGES, message_parts, mutate_bytes, mutate_message
from lance_engine.errors import LanceError
from lance_engine.file.reader import FileReader
from lance_engine.format.pb import encodings21_pb2, encodings_pb2
from lance_engine.io.memory import MemoryStore

ARRAY_ENCODING = "lance.encodings.ArrayEncoding"
_MESSAGES: dict[str, Any] = {
    "lance.encodings21.PageLayout": encodings21_pb2.PageLayout,
    ARRAY_ENCODING: encodings_pb2.ArrayEncoding,
}
_FOOTER_VERSIONS = {"2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2)}


@dataclass(frozen=True)
class RawFile:
    """A file whose parts stay where they are: what points at a place in it goes on doing so."""

    data: bytes
    schema: pa.Schema
    rows: int

    def mutated(self, rng: random.Random, others: Sequence[RawFile]) -> RawFile:
        return replace(self, data=damaged(self.data or b"LANC", rng.getrandbits(62)))

    def stored(self) -> bytes:
        return _stored(self)


@dataclass(frozen=True)
class Message:
    """A message as bytes, for `make_file`."""

    data: bytes

    def SerializeToString(self) -> bytes:  # noqa: N802 - as messages have it
        return self.data


@dataclass(frozen=True)
class FilePage:
    """One page: its description, which is a message of type `name`, and its buffers."""

    name: str
    description: bytes
    buffers: tuple[bytes, ...]
    rows: int

    @property
    def messages(self) -> set[str]:
        """The names of the messages in the description."""
        parts = message_parts(_MESSAGES[self.name].FromString(self.description))
        return {part.DESCRIPTOR.name for part in parts}

    def mutated(self, rng: random.Random, donor: FilePage) -> FilePage:
        """A page with another description, another buffer, or another number of rows."""
        draw = rng.random()
        if draw < 0.4 or not self.buffers:
            kind = _MESSAGES[self.name]
            given = donor.description if donor.name == self.name else b""
            return replace(self, description=mutate_message(rng, self.description, kind, given))
        if draw < 0.43:
            return replace(
                self, rows=rng.choice([0, self.rows - 1, self.rows + 1, rng.choice(EDGES)]) % 2**64
            )
        buffers = list(self.buffers)
        place = rng.randrange(len(buffers))
        if draw < 0.46:
            del buffers[place]
        elif draw < 0.5:
            buffers.insert(place, rng.choice([*donor.buffers, b""]))
        else:
            given = rng.choice([*donor.buffers, b""])
            buffers[place] = mutate_bytes(rng, buffers[place], given)
        return replace(self, buffers=tuple(buffers))


@dataclass(frozen=True)
class PagedFile:
    """A file that is put together of its pages each time it is read."""

    schema: pa.Schema
    version: str
    rows: int
    columns: tuple[tuple[FilePage, ...], ...]

    @classmethod
    def of(cls, data: bytes, schema: pa.Schema) -> PagedFile:
        store = MemoryStore()
        store.put("file.lance", data)
        reader = FileReader(store, "file.lance")
        columns = []
        for index in range(reader.num_columns):
            pages = [
                FilePage(
                    page.encoding.name,
                    page.encoding.value,
                    tuple(data[at : at + size] for at, size in page.buffers),
                    page.rows,
                )
                for page in reader.column_metadata(index).pages
            ]
            columns.append(tuple(pages))
        return cls(schema, reader.version, reader.descriptor.length, tuple(columns))

    @property
    def messages(self) -> set[str]:
        """The names of the messages in the descriptions of all pages."""
        return set().union(*(page.messages for pages in self.columns for page in pages))

    @property
    def data(self) -> bytes:
        columns = [
            [handmade.Page(Message(p.description), list(p.buffers), p.rows, f"/{p.name}") for p in pages]
            for pages in self.columns
        ]
        return handmade.make_file(self.schema, columns, self.rows, _FOOTER_VERSIONS[self.version])

    def mutated(self, rng: random.Random, others: Sequence[PagedFile]) -> PagedFile:
        columns = [list(pages) for pages in self.columns]
        filled = [pages for pages in columns if pages]
        given = [page for pages in rng.choice(others).columns for page in pages]
        if not filled or not given:
            return self
        pages = rng.choice(filled)
        place = rng.randrange(len(pages))
        if rng.random() < 0.02:
            return replace(self, rows=max(1, self.rows + rng.choice([-1, 1])))
        pages[place] = pages[place].mutated(rng, rng.choice(given))
        return replace(self, columns=tuple(map(tuple, columns)))

    def stored(self) -> bytes:
        return _stored(self)


def _stored(file: RawFile | PagedFile) -> bytes:
    """The Arrow schema with the number of rows, then the file."""
    metadata = (file.schema.metadata or {}) | {b"fuzz:rows": b"%d" % file.rows}
    content: bytes = file.schema.with_metadata(metadata).serialize().to_pybytes()
    return content + file.data


def load_raw_file(stored: bytes) -> RawFile:
    """What `stored` gave, as mere bytes."""
    stream = pa.BufferReader(stored)
    schema = pa.ipc.read_schema(stream)
    metadata = dict(schema.metadata)
    rows = int(metadata.pop(b"fuzz:rows"))
    return RawFile(stream.read(), schema.with_metadata(metadata or None), rows)


def load_file(stored: bytes) -> RawFile | PagedFile:
    """What `stored` gave: page by page, unless the file has other parts than pages, or only damaged ones."""
    raw = load_raw_file(stored)
    with suppress(LanceError, KeyError, struct.error, OverflowError):
        file = PagedFile.of(raw.data, raw.schema)
        if file.data == raw.data:
            return file
    return raw
