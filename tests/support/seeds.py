"""Small intact files, from which damaged ones are made: a few per layout and encoding.

They stay small, so that damage hits something that matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from corpus import all_cases, blob_cases
from pylance_files import write_file

Seed = tuple[str, str, str]

SEEDS: list[Seed] = [
    ("leaf", "int64", "some nulls"),
    ("leaf", "bool", "some nulls"),
    ("leaf", "string", "some nulls"),
    ("leaf", "large_binary", "no nulls"),
    ("leaf", "fixed_size_list<item: float>[4]", "item nulls"),
    ("leaf", "fixed_size_list<item: double>[40]", "item nulls"),
    ("leaf", "decimal128(9, 2)", "all null"),
    ("nested", "list<int32", "nulls and empty lists"),
    ("nested", "list<list<list<list<int8", "nulls and empty lists"),
    ("nested", "list<struct<list<int32", "nulls and empty lists"),
    ("nested", "struct<string", "some nulls"),
    ("values", "int32 small", "some nulls"),
    ("values", "int64 runs", "no nulls"),
    ("values", "string low cardinality", "some nulls"),
    ("values", "string constant", "some nulls"),
    ("values", "string long", "some nulls"),
    ("values", "string text", "no nulls"),
    ("forced", "string", "fullzip zstd"),
    ("forced", "string", "miniblock lz4"),
    ("forced", "list<string", "fullzip fsst"),
    ("forced", "list<int64", "fullzip"),
    ("forced", "bss", "extra"),
    ("forced", "rle zstd", "extra"),
    ("packed", "fixed", "some nulls"),
    ("nested", "map<string,int32", "nulls and empty lists"),
    ("nested", "fixed_size_list<struct", "some nulls"),
    ("blob", "large_binary", "some nulls"),
    ("packed", "with string", "some nulls"),
    ("packed", "with vector", "some nulls"),
    ("blob", "large_binary", "empty values"),
]

SEEDS_2_0: list[Seed] = [
    ("leaf", "int64", "some nulls"),
    ("leaf", "bool", "some nulls"),
    ("leaf", "string", "some nulls"),
    ("leaf", "large_binary", "all null"),
    ("leaf", "fixed_size_list<item: float>[4]", "item nulls"),
    ("leaf", "fixed_size_list<item: fixed_size_list<item: int16>[2]>[3]", "some nulls"),
    ("leaf", "dictionary<values=string, indices=int8, ordered=0>", "some nulls"),
    ("leaf", "dictionary<values=int64, indices=int32, ordered=0>", "no nulls"),
    ("nested", "list<list<int32", "nulls and empty lists"),
    ("nested", "list<struct<string", "empty lists"),
    ("values", "string low cardinality", "some nulls"),
    ("forced", "string", "miniblock zstd"),
    ("forced", "string", "miniblock lz4"),
    ("forced", "string some nulls", "miniblock fsst"),
    ("packed", "fixed", "no nulls"),
    ("blob", "large_binary", "some nulls"),
    ("blob", "large_binary", "empty values"),
]


def write_seeds(folder: Path, seeds: Iterable[Seed], *, version_2_0: bool = False) -> None:
    """One file per seed and file version, and its Arrow schema in ``*.schema``."""
    cases = {(case.group, case.kind, case.mix): case for case in [*all_cases(), *blob_cases()]}
    for number, key in enumerate(seeds):
        case = cases[key]
        table = case.build()
        for version in ("2.0",) if version_2_0 else case.versions:
            path = folder / f"{number}-{version}.lance"
            write_file(path, table, version)
            path.with_suffix(".schema").write_bytes(table.schema.serialize().to_pybytes())
