"""Targets for what Python parses: containers, zone maps, manifests and what belongs to them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from fuzz_layouts import written_files
from fuzz_loop import Input, Target
from fuzz_mutation import mutate_bytes, mutate_message
from google.protobuf.message import DecodeError, Message
from lance_engine import kernels
from lance_engine.encodings.leaf import LeafShape
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.file.reader import FileReader
from lance_engine.file.zone_map import parse_zone_map
from lance_engine.format import deletion, index_section, manifest, row_ids, transaction
from lance_engine.format.fragment import DeletionKind
from lance_engine.format.fragment_list import FragmentList
from lance_engine.format.pb import file_v2_pb2, index_pb2, table_pb2
from lance_engine.index.vector.ivf import parse_ivf
from lance_engine.io.local import LocalStore
from lance_engine.io.memory import MemoryStore
from lance_engine.schema_tree import Schema
from lance_engine.write.dataset import write_dataset

ROWS = 1000


@dataclass(frozen=True)
class Blob:
    """Bytes, changed as such or as the message of type `kind` that they are."""

    data: bytes
    kind: type[Message] | None = None

    def mutated(self, rng: random.Random, others: Sequence[Any]) -> Blob:
        donor = rng.choice(others).data
        if self.kind is None or rng.random() < 0.2:
            return replace(self, data=mutate_bytes(rng, self.data, donor))
        return replace(self, data=mutate_message(rng, self.data, self.kind, donor))

    def stored(self) -> bytes:
        return self.data


def allowed(read: Callable[[bytes], object]) -> Callable[[Input], str]:
    """A target's `read`: the two errors for bad files are not findings, others are."""

    def checked(input: Input) -> str:
        with suppress(CorruptFileError, UnsupportedFeatureError):
            read(input.stored())
        return ""

    return checked


# ---- data files: container and column metadata -------------------------------------------------------------


def _read_container(data: bytes) -> None:
    store = MemoryStore()
    store.put("file.lance", data)
    reader = FileReader(store, "file.lance")
    reader.descriptor.schema.metadata.get("key")
    for index in range(min(reader.num_columns, 20)):
        reader.column_metadata(index)
        with reader.placed():
            if reader.version == "2.0":
                reader.array_kind(index)
                reader.open_array_pages(index, LeafShape("fixed", 8), is_dictionary=False, is_blob=False)
            else:
                reader.open_pages(index)


def _containers() -> list[Blob]:
    """The ends of small files, with what they point at."""
    return [Blob(file.data) for file in written_files() if len(file.data) < 8 << 10]


def _column_metadata() -> list[Blob]:
    found = []
    for file in written_files():
        store = MemoryStore()
        store.put("file.lance", file.data)
        reader = FileReader(store, "file.lance")
        position, size = struct.unpack("<QQ", reader.read(reader.footer.column_table_position, 16))
        found.append(Blob(reader.read(position, size), file_v2_pb2.ColumnMetadata))
    return found


def _read_column_metadata(data: bytes) -> None:
    from lance_engine.encodings.faults import fault_of
    from lance_engine.format.container import parse_column_metadata

    try:
        assert parse_column_metadata(data, 1 << 20).rows >= 0
    except (kernels.CorruptDataError, kernels.UnsupportedError) as error:
        raise fault_of(error) from error  # type: ignore[misc]


# ---- zone maps ---------------------------------------------------------------------------------------------

ZONES = 13
ZONE_COLUMNS = {
    "numbers": pa.array(range(ZONES * 10), pa.int64()),
    "with nulls": pa.array([None if i < 40 else i / 3 for i in range(ZONES * 10)], pa.float32()),
    "bools": pa.array([i % 30 == 0 for i in range(ZONES * 10)]),
    "text": pa.array([None if 20 < i < 33 else "x" * (i % 7) for i in range(ZONES * 10)]),
    "nothing": pa.nulls(ZONES * 10, pa.int16()),
}


def _zone_maps(column: str) -> list[Blob]:
    with TemporaryDirectory() as folder:
        write_dataset(pa.table({column: ZONE_COLUMNS[column]}), folder, zone_rows=10)
        (path,) = Path(folder).glob("data/*.lance")
        reader = FileReader(LocalStore(str(path.parent)), path.name)
        return [Blob(reader.read(*buffer)) for buffer in reader.column_metadata(0).buffers]


def _read_zone_map(column: str) -> Callable[[bytes], object]:
    (leaf,) = Schema.from_arrow(pa.schema([(column, ZONE_COLUMNS[column].type)])).fields
    return lambda data: parse_zone_map(data, ZONES, leaf, "file.lance")


# ---- manifests and what belongs to them --------------------------------------------------------------------


def _dataset_files(pattern: str) -> list[bytes]:
    """Files of a small dataset of pylance with appends, deletions and an index."""
    with TemporaryDirectory() as folder:
        table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "text": ["abc"] * ROWS})
        for number, stable in enumerate((False, True)):
            uri = f"{folder}/{number}"
            dataset = lance.write_dataset(
                table, uri, max_rows_per_file=300, enable_stable_row_ids=stable, schema=table.schema
            )
            dataset.delete("id % 7 = 3")
            dataset.create_scalar_index("id", "BTREE")
            dataset.tags.create("first", 1)
            dataset.update({"text": "'changed'"}, where="id < 20")
            dataset.insert(table.slice(0, 10))
        return [path.read_bytes() for path in sorted(Path(folder).glob(f"*/{pattern}"))]


def _manifests() -> list[Blob]:
    return [Blob(data) for data in _dataset_files("_versions/*.manifest")]


def _framed(content: bytes) -> bytes:
    """A manifest file of this manifest message."""
    return struct.pack("<I", len(content)) + content + struct.pack("<QHH4s", 0, 0, 2, b"LANC")


def _read_manifest(data: bytes) -> None:
    parsed, sections, changes = manifest.parse_manifest_file(data)
    for fragment in parsed.fragments:
        assert fragment.id >= 0
    for name in ("schema", "created_at"):
        getattr(parsed, name, None)
    if sections is not None:
        index_section.parse_index_section(sections)
    if changes is not None:
        transaction.parse_transaction(changes)


def _manifest_messages() -> list[Blob]:
    found = []
    for blob in _manifests():
        position = struct.unpack_from("<Q", blob.data, len(blob.data) - 16)[0]
        (length,) = struct.unpack_from("<I", blob.data, position)
        found.append(Blob(blob.data[position + 4 : position + 4 + length], table_pb2.Manifest))
    return found


def _fragment_lists() -> list[Blob]:
    """The fragments of manifests, as fields of a manifest that has nothing else."""
    found = []
    for blob in _manifest_messages():
        fragments = table_pb2.Manifest.FromString(blob.data).fragments
        data = table_pb2.Manifest(fragments=fragments).SerializeToString()
        found.append(Blob(data, table_pb2.Manifest))
    return found


def _read_fragments(input: Blob) -> str:
    """The kernels see the fragments that protobuf sees, and refuse no others that row addresses allow."""
    try:
        fragments = FragmentList(kernels.split_message(input.data, 2)[0])
    except (CorruptFileError, kernels.CorruptDataError):
        fragments = None
    try:
        messages = table_pb2.Manifest.FromString(input.data).fragments
    except DecodeError:
        messages = None
    if messages is None or fragments is None:
        addressable = all(each.id < 2**32 and each.physical_rows <= 2**32 for each in messages or ())
        return "" if messages is None or not addressable else "the kernels refuse what protobuf reads"
    with suppress(CorruptFileError, UnsupportedFeatureError):
        for fragment in fragments:
            assert fragment.id >= 0
    rows = fragments.live_rows()
    deletions = any(each.HasField("deletion_file") for each in messages)
    if fragments.ids.tolist() != [each.id for each in messages] or fragments.any_deletions() != deletions:
        return "the kernels see other fragments than protobuf"
    live = sum(each.physical_rows - each.deletion_file.num_deleted_rows for each in messages)
    return "" if rows is None or rows == live else f"the kernels see {rows} rows of {live}"


def _index_sections() -> list[Blob]:
    parsed = [manifest.parse_manifest_file(blob.data)[1] for blob in _manifests()]
    return [Blob(section, table_pb2.IndexSection) for section in parsed if section is not None]


def _deletions(kind: DeletionKind) -> list[Blob]:
    offsets = [np.arange(0, ROWS, 3), np.arange(5), np.array([0, 1, 2, 700, 999]), np.arange(10, 600)]
    return [Blob(deletion.encode_deletions(each.astype(np.uint32), kind)) for each in offsets]


def _read_deletions(kind: DeletionKind) -> Callable[[bytes], object]:
    return lambda data: deletion.decode_deletions(data, kind, ROWS)


def _row_ids() -> list[Blob]:
    rng = np.random.default_rng(1)
    ids = [
        np.arange(ROWS),
        rng.permutation(ROWS),
        np.delete(np.arange(ROWS + 3), [5, 77, 901]),
        np.sort(rng.choice(2 * ROWS, ROWS, replace=False)),
        np.sort(rng.choice(2**40, ROWS, replace=False)),
    ]
    return [Blob(row_ids.encode_row_ids(each.astype(np.uint64)), table_pb2.RowIdSequence) for each in ids]


def _read_row_ids(data: bytes) -> None:
    row_ids.count_row_ids(data, ROWS)
    segments = row_ids.parse_row_ids(data, ROWS)
    row_ids.row_ids_at(segments, np.array([0, ROWS // 2, ROWS - 1]))


def _row_versions() -> list[Blob]:
    versions = [np.full(ROWS, 3), np.arange(ROWS) // 100, np.arange(ROWS) % 2 + 1]
    kind = table_pb2.RowDatasetVersionSequence
    return [Blob(row_ids.encode_versions(each.astype(np.uint64)), kind) for each in versions]


def _target(
    name: str,
    seeds: Callable[[], Sequence[Input]],
    read: Callable[[bytes], object],
    kind: type[Message] | None = None,
) -> Target:
    return Target(name, seeds, allowed(read), native=False, load=lambda data: Blob(data, kind))


def _partitions() -> list[Blob]:
    tensor = index_pb2.Tensor(data_type=2, shape=[2, 4], data=np.arange(8, dtype=np.float32).tobytes())
    new = index_pb2.IVF(offsets=[0, 3], lengths=[3, 4], centroids_tensor=tensor)
    old = index_pb2.IVF(lengths=[3, 4], centroids=[0.5] * 8)
    return [Blob(message.SerializeToString(), index_pb2.IVF) for message in (new, old)]


TARGETS = [
    _target("container", _containers, _read_container),
    _target("column metadata", _column_metadata, _read_column_metadata, file_v2_pb2.ColumnMetadata),
    *(
        _target(f"zone map: {name}", lambda name=name: _zone_maps(name), _read_zone_map(name))
        for name in ZONE_COLUMNS
    ),
    _target("manifest file", _manifests, _read_manifest),
    _target(
        "manifest message",
        _manifest_messages,
        lambda data: _read_manifest(_framed(data)),
        table_pb2.Manifest,
    ),
    _target("partitions", _partitions, lambda data: parse_ivf(data, 7), index_pb2.IVF),
    Target(
        "fragments",
        _fragment_lists,
        _read_fragments,
        load=lambda data: Blob(data, table_pb2.Manifest),
    ),
    _target(
        "transaction",
        lambda: [Blob(data, table_pb2.Transaction) for data in _dataset_files("_transactions/*.txn")],
        transaction.parse_transaction,
        table_pb2.Transaction,
    ),
    _target("index section", _index_sections, index_section.parse_index_section, table_pb2.IndexSection),
    *(
        _target(f"deletions: {kind.name.lower()}", lambda kind=kind: _deletions(kind), _read_deletions(kind))
        for kind in DeletionKind
    ),
    _target("row ids", _row_ids, _read_row_ids, table_pb2.RowIdSequence),
    _target(
        "row versions",
        _row_versions,
        lambda data: row_ids.decode_versions(data, ROWS),
        table_pb2.RowDatasetVersionSequence,
    ),
]
