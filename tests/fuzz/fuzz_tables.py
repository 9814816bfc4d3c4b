"""Targets of whole tables with one changed file: streams, conditions tested while decoding, and indices."""

from __future__ import annotations

import dataclasses
import functools
import random
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatch
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from damage import check_structure
from fuzz_files import PagedFile, RawFile, load_file
from fuzz_loop import Target
from indices import KINDS
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.index_section import parse_index_section, replace_indices
from lance_engine.format.manifest import parse_manifest_file, serialize_manifest_file
from lance_engine.write.dataset import write_dataset

ROWS = 1200
DATA = "data/*.lance"
FILTERS = (
    "small BETWEEN 3 AND 9 AND small <> 7",
    "runs IN (1, 5, 1000)",
    "runs > -4 AND (few = 'blue' OR words LIKE 'word 1%')",
    "share < 0.25",
    "price >= 3.5",
    "few IN ('red', 'green') OR small IS NULL",
    "words LIKE '%7%3%'",
    "words = 'word 12' OR text LIKE '%alpha%'",
)
# Conditions that the kernels test, and the same for values that were read: bytes, which need not be text.
TESTS = (
    ("small BETWEEN 3 AND 9", (pc.field("small") >= 3) & (pc.field("small") <= 9)),
    ("runs IN (1, 5, 1000)", pc.field("runs").isin(pa.array([1, 5, 1000], pa.int64()))),
    ("few = 'blue'", pc.field("few").cast(pa.binary()) == b"blue"),
    ("words LIKE 'word 1%'", pc.starts_with(pc.field("words").cast(pa.binary()), pattern=b"word 1")),
)
INDEX_FILTERS = (
    "small = 5",
    "small IN (1, 2, 30) OR small IS NULL",
    "small > 10",
    "words = 'word 31'",
    "words BETWEEN 'word 2' AND 'word 3'",
    "words IN ('word 1', 'word 62', 'x') AND small < 6",
)


def _table() -> pa.Table:
    count = range(ROWS)
    return pa.table(
        {
            "small": pa.array([None if i % 11 == 0 else i % 13 for i in count], pa.int32()),
            "runs": pa.array([i // 200 for i in count], pa.int64()),
            "few": pa.array([("red", "green", None, "blue")[i % 4] for i in count]),
            "words": pa.array([f"word {i * 31 % 900}" for i in count]),
            "text": pa.array([("alpha " if i % 50 == 0 else "beta ") * (i % 5) for i in count]),
            "share": pa.array(np.linspace(0, 1, ROWS, dtype=np.float32)),
            "price": pa.array([Decimal(i % 40) for i in count], pa.decimal128(9, 2)),
            "lists": pa.array([None if i % 7 == 0 else [i] * (i % 4) for i in count], pa.list_(pa.int16())),
        }
    )


def _blobs() -> pa.Table:
    """Blobs of the second kind: in the data file, in a file for several, none and empty ones."""
    values = [b"abc", None, b"", b"x" * 70_000, b"w" * 80_000, b"yz", *([b"text"] * 20)]
    kind = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    return pa.table([range(len(values)), values], schema=pa.schema([("id", pa.int64()), kind]))


def _without_sizes(manifest: bytes) -> bytes:
    """The manifest file without the sizes of files, which would give changed files away."""
    parsed, section, _ = parse_manifest_file(manifest)
    fragments = [
        dataclasses.replace(
            fragment, files=tuple(dataclasses.replace(file, file_size=None) for file in fragment.files)
        )
        for fragment in parsed.fragments
    ]
    if section is not None:
        for segment in parse_index_section(section):
            section = replace_indices(section, [dataclasses.replace(segment, files=())], [segment.uuid])
    return serialize_manifest_file(
        dataclasses.replace(parsed, fragments=tuple(fragments)), index_section=section
    )


def _contents(folder: str) -> dict[str, bytes]:
    """The latest version of a dataset: its files by name."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    latest = min(name for name in files if name.endswith(".manifest"))  # their numbers count down
    kept = {name: content for name, content in files.items() if name.startswith(("data/", "_indices/"))}
    return kept | {latest: _without_sizes(files[latest])}


#: What writes other tables into a folder, by their names.
MAKERS: dict[str, Callable[[str], None]] = {}


@functools.cache
def table_files(name: str) -> dict[str, bytes]:
    """The files of a table, named after the version of its data, its contents, or an index and a column."""
    with tempfile.TemporaryDirectory() as folder:
        if name in MAKERS:
            MAKERS[name](folder)
        elif name == "0.1":
            lance.write_dataset(_table(), folder, data_storage_version="legacy", max_rows_per_group=500)
        elif name == "blobs":
            lance.write_dataset(_blobs(), folder, data_storage_version="2.2")
        elif name == "2.0 zones":
            write_dataset(_table(), folder, data_storage_version="2.0", zone_rows=100, zone_index="strict")
        elif name.startswith("2."):
            write_dataset(_table(), folder, data_storage_version=name, zone_rows=100)
        else:
            kind, column = name.split()
            options = {"btree": {"page_rows": 100}, "bitmap": {}}.get(kind, {"rows_per_zone": 100})
            plain = DatasetVersion(write_dataset(_table().select(["small", "words"]), folder))
            plain.create_index(column, kind, **options)
        return _contents(folder)


@dataclass(frozen=True)
class TableFile:
    """One file of a table, changed as such or page by page."""

    table: str
    pattern: str
    file: RawFile | PagedFile

    def mutated(self, rng: random.Random, others: Sequence[TableFile]) -> TableFile:
        fitting = [other.file for other in others if type(other.file) is type(self.file)]
        return dataclasses.replace(self, file=self.file.mutated(rng, fitting))  # type: ignore[arg-type]

    def stored(self) -> bytes:
        return f"{self.table}|{self.pattern}\n".encode() + self.file.stored()

    def put_into(self, folder: Path) -> None:
        """The table with this file instead of its file."""
        files = table_files(self.table)
        (place,) = (name for name in files if fnmatch(name, self.pattern))
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.file.data if name == place else content)


def load_table_file(stored: bytes) -> TableFile:
    """What `TableFile.stored` gave."""
    place, _, file = stored.partition(b"\n")
    table, pattern = place.decode().split("|")
    return TableFile(table, pattern, load_file(file))


def allowed(read: Callable[[], pa.Table]) -> pa.Table | None:
    """What is read, None if the file is known to be damaged."""
    try:
        table = read()
    except (CorruptFileError, UnsupportedFeatureError):
        return None
    check_structure(table)
    return table


def _read_table(dataset: DatasetVersion, number: int) -> str:
    """Streams, counts, and rows that pass conditions: the same ones, whether tested while decoding or not."""
    allowed(lambda: dataset.scan().to_table())
    allowed(lambda: dataset.scan(batch_size=100, offset=7, limit=900, dictionaries=["few"]).to_table())
    allowed(lambda: dataset.take([0, 5, ROWS // 2, ROWS - 1]))
    filter = FILTERS[number % len(FILTERS)]
    allowed(lambda: dataset.scan(["small"], filter, limit=20).to_table())
    allowed(lambda: dataset.scan(["lists"], filter).to_table())
    simple, expected = TESTS[number % len(TESTS)]
    tested = allowed(lambda: dataset.scan(["_rowaddr"], simple, zone_maps=False).to_table())
    whole = allowed(lambda: dataset.scan(["small", "runs", "few", "words"]).to_table())
    if tested is None or whole is None:
        return ""
    right = whole.filter(expected).num_rows
    count = dataset.scan([], simple, zone_maps=False).count()
    if tested.num_rows == count == right:
        return ""
    return f"{simple}: {tested.num_rows} rows are found, {count} counted, {right} are right"


def _read_blobs(dataset: DatasetVersion, number: int) -> str:
    """Whole, row by row and where a condition holds."""
    allowed(lambda: dataset.scan().to_table())
    allowed(lambda: dataset.take([0, 3, 4, number % 26]))
    allowed(lambda: dataset.scan(["b"], "id > 2 AND id < 6").to_table())
    return ""


def _read_indexed(dataset: DatasetVersion, number: int) -> str:
    """Values are not protected: searches may find wrong rows, but no more of them than there are."""
    filter = INDEX_FILTERS[number % len(INDEX_FILTERS)]
    found = allowed(lambda: dataset.scan(["small", "words"], filter).to_table())
    if found is not None and found.num_rows > ROWS:
        return f"{filter}: {found.num_rows} of {ROWS} rows are found"
    return ""


def read_table_file(input: TableFile, read: Callable[[DatasetVersion, int], str]) -> str:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        input.put_into(Path(folder))
        try:
            # Which conditions are tried follows from the input: all of them would take too long.
            return read(DatasetVersion.open(folder), zlib.crc32(input.file.data))
        except (CorruptFileError, UnsupportedFeatureError):
            return ""


def _data_seeds(table: str) -> list[TableFile]:
    (content,) = (data for name, data in table_files(table).items() if fnmatch(name, DATA))
    raw = RawFile(content, (_blobs() if table == "blobs" else _table()).schema, ROWS)
    # Page by page, where a file is nothing but its pages, or can be read as such.
    files = [raw] if table in ("0.1", "2.0 zones", "blobs") else [raw, PagedFile.of(content, raw.schema)]
    return [TableFile(table, DATA, file) for file in files]


def _index_seeds(kind: str) -> list[TableFile]:
    found = []
    for table in (f"{kind} small", f"{kind} words"):
        for name, content in table_files(table).items():
            if name.startswith("_indices/"):
                pattern = f"_indices/*/{Path(name).name}"
                found.append(TableFile(table, pattern, RawFile(content, pa.schema([]), ROWS)))
    return found


TARGETS = [
    *(
        Target(
            f"table: {table}",
            lambda table=table: _data_seeds(table),
            lambda input, table=table: read_table_file(
                input, _read_blobs if table == "blobs" else _read_table
            ),
            load=load_table_file,
        )
        for table in ("0.1", "2.0", "2.0 zones", "2.1", "2.2", "blobs")
    ),
    *(
        Target(
            f"index: {kind}",
            lambda kind=kind: _index_seeds(kind),
            lambda input: read_table_file(input, _read_indexed),
            native=False,
            load=load_table_file,
        )
        for kind in KINDS
    ),
]
