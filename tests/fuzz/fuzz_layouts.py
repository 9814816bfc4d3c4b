"""One target per page layout and encoding, whose seeds are files that have pages of that kind."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import fuzz_arrays_2_0
import pyarrow as pa
from damage import outcome
from fuzz_files import PagedFile, RawFile, load_file, load_raw_file
from fuzz_loop import Target
from hypothesis import HealthCheck, Phase, given, seed, settings
from lance_engine.write.dataset import write_dataset
from native_files import NativeFile
from random_files import RandomFile, random_files
from seeds import SEEDS, SEEDS_2_0, write_seeds

# The messages of pages (format 2.1 and 2.0) that have a target of their own, wherever they are nested.
LAYOUTS = ("MiniBlockLayout", "FullZipLayout", "ConstantLayout", "BlobLayout")
COMPRESSIVE = (
    "Flat",
    "Variable",
    "InlineBitpacking",
    "OutOfLineBitpacking",
    "Fsst",
    "Rle",
    "ByteStreamSplit",
    "General",
    "FixedSizeList",
    "PackedStruct",
    "VariablePackedStruct",
)
ARRAYS_2_0 = (
    "Flat",
    "Nullable",
    "List",
    "FixedSizeList",
    "Binary",
    "Dictionary",
    "Fsst",
    "PackedStruct",
    "Bitpacked",
    "BitpackedForNonNeg",
    "FixedSizeBinary",
)
MOST_SEED_BYTES = 24 << 10
MOST_SEEDS = 24


@functools.cache
def written_files() -> list[RawFile]:
    """Files of pylance of all versions, a few per layout and encoding."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        for version_2_0, seeds in ((False, SEEDS), (True, SEEDS_2_0)):
            folder = Path(name) / str(version_2_0)
            folder.mkdir()
            write_seeds(folder, seeds, version_2_0=version_2_0)
            for path in sorted(folder.glob("*.lance")):
                schema = pa.ipc.read_schema(pa.BufferReader(path.with_suffix(".schema").read_bytes()))
                data = path.read_bytes()
                found.append(RawFile(data, schema, NativeFile.in_memory(data, schema).rows))
    return found


@functools.cache
def handmade_files() -> list[RawFile]:
    """Legal files that no writer makes; the same ones every time."""
    found: list[RawFile] = []

    def keep(file: RandomFile) -> None:
        if file.table.num_rows:
            found.append(RawFile(file.data, file.table.schema, file.table.num_rows))

    options = settings(
        max_examples=300,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seed(1)(options(given(random_files(most_pages=1))(keep)))()
    return found


@functools.cache
def our_files() -> list[RawFile]:
    """Files of our own writer."""
    count = 2000
    table = pa.table(
        {
            "number": pa.array([None if i % 5 == 0 else i for i in range(count)], pa.int32()),
            "same": pa.repeat(pa.scalar(7, pa.int64()), count),
            "same text": pa.repeat("text", count),
            "same or null": pa.array([None if i % 3 == 0 else True for i in range(count)]),
            "decimal": pa.array([Decimal(i % 40) for i in range(count)], pa.decimal128(9, 2)),
            "lists": pa.array(
                [None if i % 7 == 0 else [1] * (i % 4) for i in range(count)], pa.list_(pa.int8())
            ),
            "words": pa.array([f"word {i % 900}" for i in range(count)]),
        }
    )
    found = []
    for version in ("2.0", "2.1", "2.2"):
        for name in table.column_names:
            with tempfile.TemporaryDirectory() as folder:
                part = table.select([name])
                write_dataset(part, folder, data_storage_version=version)
                (path,) = Path(folder).glob("data/*.lance")
                found.append(RawFile(path.read_bytes(), part.schema, count))
    return found


@functools.cache
def paged_files() -> list[PagedFile]:
    """Small files of all kinds, smallest first."""
    files = [*written_files(), *our_files(), *handmade_files()]
    small = [file for file in files if len(file.data) <= MOST_SEED_BYTES]
    paged = [PagedFile.of(file.data, file.schema) for file in small]
    return sorted([*paged, *fuzz_arrays_2_0.seeds()], key=lambda file: len(file.data))


def read_file(input: PagedFile | RawFile) -> str:
    """Read a file from memory and mapped: whole, a range and single rows."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".lance") as place:
        return outcome(input.data, Path(place.name), input.schema, input.rows)


def _with(message: str, versions: Sequence[str]) -> list[PagedFile]:
    fitting = [file for file in paged_files() if file.version in versions and message in file.messages]
    assert fitting, f"no file has {message}"
    # Of the small ones all, of the others a choice.
    few = MOST_SEEDS // 2
    return [*fitting[:few], *fitting[few :: max(1, len(fitting) // few)]]


def _target(group: str, message: str, versions: Sequence[str] = ("2.1", "2.2")) -> Target:
    return Target(f"{group}: {message}", lambda: _with(message, versions), read_file, load=load_file)


def _is_blob(file: RawFile) -> bool:
    return any((field.metadata or {}).get(b"lance-encoding:blob") == b"true" for field in file.schema)


TARGETS = [
    *(_target("layout", message) for message in LAYOUTS),
    Target(
        "layout: blobs in place",
        lambda: [file for file in written_files() if _is_blob(file)],
        read_file,
        load=load_raw_file,
    ),
    *(_target("encoding", message) for message in COMPRESSIVE),
    *(_target("2.0", message, ("2.0",)) for message in ARRAYS_2_0),
    Target(
        "whole files",
        lambda: [*written_files(), *our_files(), *handmade_files()[:40]],
        read_file,
        load=load_raw_file,
    ),
]
