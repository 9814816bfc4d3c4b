"""Profiles: every encoding they choose can be read by pylance and by the engine, and files differ in size."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from corpus import difference
from lance_engine.dataset import DatasetVersion
from lance_engine.encodings.describe import describe_page
from lance_engine.encodings.profile import PROFILES, ProfileName
from lance_engine.file.reader import FileReader
from lance_engine.io.local import LocalStore
from lance_engine.write.dataset import write_dataset

ROWS = 12_000


def columns(nulls: bool) -> dict[str, pa.Array]:
    """One column for every choice that the profiles can make."""
    rng = np.random.default_rng(1)
    few = rng.integers(0, 40, ROWS)
    words = np.array(["lance", "columnar", "format", "encoding", "random", "access", "é", "日本"])

    def texts(least: int, most: int) -> list[str]:
        picks = words[rng.integers(0, len(words), (ROWS, most))]
        counts = rng.integers(least, most, ROWS)
        return [" ".join(row[:count]) for row, count in zip(picks, counts, strict=True)]

    arrays = {
        "price": pa.array(rng.integers(90_000, 10_000_000, ROWS)).cast(pa.decimal128(21, 2)),
        "wide": pa.array(rng.integers(0, 1_000_000, ROWS)).cast(pa.decimal256(60, 2)),
        "few_decimals": pa.array(few).cast(pa.decimal128(21, 2)),
        "few_doubles": pa.array(rng.random(40)[few]),
        "few_floats": pa.array(rng.random(40).astype(np.float32)[few]),
        "few_large": pa.array(rng.integers(-(2**62), 2**62, 40)[few]),
        "few_binary": pa.array([bytes([n] * 16) for n in few], pa.binary(16)),
        "measured": pa.array(np.round(rng.normal(20, 5, ROWS), 1)),
        "smooth": pa.array(np.cumsum(rng.normal(0, 1e-3, ROWS)).astype(np.float32)),
        "sorted": pa.array(np.repeat(np.arange(ROWS // 4) * 8 + 2**40, 4)),
        "runs": pa.array(np.repeat(rng.integers(0, 2**31, ROWS // 100), 100).astype(np.int32)),
        "flags": pa.array(np.repeat(rng.random(ROWS // 1000) > 0.5, 1000)),
        "noise": pa.array(rng.integers(-(2**63), 2**63 - 1, ROWS)),
        "text": pa.array(texts(1, 9)),
        "tag": pa.array(words[few % len(words)]),
        "long_text": pa.array(texts(50, 90), pa.large_string()),
        "bytes": pa.array([b"\0\1" * n for n in few], pa.binary()),
    }
    if nulls:
        valid = pa.array(rng.random(ROWS) > 0.1)
        missing = {name: pa.nulls(ROWS, array.type) for name, array in arrays.items()}
        arrays = {name: pc.if_else(valid, array, missing[name]) for name, array in arrays.items()}
    return arrays


def encodings(uri: Path, table: pa.Table) -> dict[str, str]:
    (file,) = (uri / "data").iterdir()
    reader = FileReader(LocalStore(uri), f"data/{file.name}")
    return {
        name: describe_page(reader.column_metadata(number).pages[0].encoding)
        for number, name in enumerate(table.column_names)
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_both_libraries_read_every_profile(version: str, nulls: bool, tmp_path: Path) -> None:
    table = pa.table(columns(nulls))
    offsets = pa.array(np.arange(0, ROWS + 1, 10, dtype=np.int32))
    lists = pa.ListArray.from_arrays(offsets, table.column("price").chunk(0))
    nested = pa.table({"lists": lists, "text": table.column("text").slice(0, len(lists))})
    rows = np.random.default_rng(2).integers(0, len(lists), 50)
    for data in (table, nested):
        for profile in PROFILES:
            uri = tmp_path / f"{profile}{data.num_columns}"
            write_dataset(data, uri, data_storage_version=version, profile=profile)
            dataset = lance.dataset(uri)
            assert not difference(dataset.to_table(), data)
            assert not difference(dataset.take(rows.tolist()), data.take(pa.array(rows)))
            assert not difference(DatasetVersion.open(str(uri)).scan().to_table(), data)


def test_what_profiles_choose(tmp_path: Path) -> None:
    table = pa.table(columns(nulls=False))
    chosen: dict[ProfileName, dict[str, str]] = {}
    for profile in PROFILES:
        write_dataset(table, tmp_path / profile, profile=profile, zone_maps=False)
        chosen[profile] = encodings(tmp_path / profile, table)
    assert chosen["balanced"]["price"] == "mini-block(lz4(flat128))"
    assert chosen["size"]["price"] == "mini-block(zstd(flat128))"
    assert chosen["balanced"]["text"] == "mini-block(fsst(variable))"
    assert chosen["size"]["text"] == "mini-block(zstd(variable))"
    assert "byte-stream-split" in chosen["size"]["smooth"]
    assert not any("zstd" in encoding for encoding in chosen["speed"].values())
    assert all(encoding["noise"] == "mini-block(flat64)" for encoding in chosen.values())
    for encoding in (chosen["balanced"], chosen["speed"]):
        for name in ("few_decimals", "few_doubles", "few_large", "few_binary", "tag"):
            assert encoding[name].startswith("mini-block(dictionary"), name
    sizes = [
        sum(file.stat().st_size for file in (tmp_path / profile / "data").iterdir())
        for profile in ("size", "balanced", "speed")
    ]
    assert sizes == sorted(sizes)


# What each profile takes where it pays; other columns are up to the sizes that the sample gives.
CHOSEN: dict[ProfileName, dict[str, str]] = {
    "size": {
        "price": "zstd(flat128)",
        "smooth": "lz4(byte-stream-split(flat32))",
        "runs": "rle(flat32)",
        "text": "zstd(variable)",
        "few_large": "dictionary[40]",
        "few_decimals": "dictionary[40]",
        "tag": "dictionary[8]",
        "noise": "flat64",
    },
    "balanced": {
        "price": "lz4(flat128)",
        "smooth": "flat32",
        "runs": "rle(flat32)",
        "text": "fsst(variable)",
        "few_large": "dictionary[40]",
        "few_decimals": "dictionary[40]",
        "tag": "dictionary[8]",
        "noise": "flat64",
    },
    "speed": {
        "price": "lz4(flat128)",
        "smooth": "flat32",
        "runs": "rle(flat32)",
        "text": "fsst(variable)",
        "few_large": "dictionary[40]",
        "few_decimals": "dictionary[40]",
        "tag": "dictionary[8]",
        "noise": "flat64",
    },
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("profile", CHOSEN)
def test_each_encoding_where_it_pays(profile: ProfileName, version: str, tmp_path: Path) -> None:
    table = pa.table(columns(nulls=False)).select(list(CHOSEN[profile]))
    write_dataset(table, tmp_path, data_storage_version=version, profile=profile, mode="overwrite")
    found = encodings(tmp_path, table)
    assert {name: found[name] for name, part in CHOSEN[profile].items() if part not in found[name]} == {}
    assert not difference(lance.dataset(tmp_path).to_table(), table)


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="size, balanced, speed"):
        write_dataset(pa.table({"a": [1]}), tmp_path / "d", profile="small")  # type: ignore[arg-type]
