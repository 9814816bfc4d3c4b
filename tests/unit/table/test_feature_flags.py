"""Feature flags: what is refused, and the flags of new manifests."""

from __future__ import annotations

import dataclasses

import pytest
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.manifest import BasePath, DataFile, DeletionFile, DeletionKind, Fragment, Manifest
from lance_engine.schema_tree import Schema
from lance_engine.table.features import check_readable, check_writable, derived_flags, feature_names

EMPTY = Manifest(1, Schema(()), (), storage_version="2.1")


def _flags(reader: int, writer: int) -> Manifest:
    return dataclasses.replace(EMPTY, reader_feature_flags=reader, writer_feature_flags=writer)


@pytest.mark.parametrize("bit", [1, 2, 4, 16, 32, 128, 2048])
def test_known_flags_are_read_in_any_mask(bit: int) -> None:
    for manifest in (_flags(bit, bit), _flags(bit, 0), _flags(0, bit)):
        check_readable(manifest)


def test_paired_flags_are_read_in_both_masks_only() -> None:
    for bit in (256, 1024, 16384):
        check_readable(_flags(bit, bit))
    for bit in (256, 1024, 16384, 65536):
        for manifest in (_flags(bit, 0), _flags(0, bit)):
            with pytest.raises(CorruptFileError, match="both masks"):
                check_readable(manifest)


def test_a_writer_flag_among_the_reader_flags_is_corrupt() -> None:
    check_readable(_flags(0, 32768))
    with pytest.raises(CorruptFileError, match="writer mask only"):
        check_readable(_flags(32768, 32768))


@pytest.mark.parametrize(
    ("reader", "writer", "name"),
    [
        (64, 64, r"data overlay files \(64\)"),
        (512, 0, r"unknown flag 512 \(512\)"),
        (65536, 65536, "zone write seed"),
        (1 << 63, 0, "9223372036854775808"),
        (512 | 4096, 0, r"512.*4096"),
    ],
)
def test_unknown_reader_flags_are_named(reader: int, writer: int, name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=name):
        check_readable(_flags(reader, writer))


@pytest.mark.parametrize("bit", [64, 128, 512, 8192, 32768, 1 << 17])
def test_unknown_writer_flags_allow_reading(bit: int) -> None:
    manifest = _flags(0, bit)
    check_readable(manifest)
    with pytest.raises(UnsupportedFeatureError, match=str(bit)):
        check_writable(manifest)


def test_known_writer_flags_allow_writing() -> None:
    check_writable(_flags(0, 1 | 2 | 4 | 8 | 16 | 32 | 256 | 2048))


FILE = DataFile("a", (0,), (0,), 2, 1)
DELETED = Fragment(0, (FILE,), 5, DeletionFile(DeletionKind.ARROW, 1, 1, 1))


@pytest.mark.parametrize(
    ("changes", "reader", "writer"),
    [
        ({}, 0, 0),
        ({"fragments": (DELETED,)}, 1, 1),
        ({"config": {"a": "b"}}, 0, 8),
        ({"base_paths": (BasePath(1, "/x", True),)}, 16, 16),
        ({"fragments": (Fragment(0, (FILE, dataclasses.replace(FILE, minor_version=2)), 5),)}, 256, 256),
        ({"fragments": (Fragment(0, (FILE,), 5, has_spilled_lineage=True),)}, 2048, 2048),
        # Old flags go, those that stay once set stay.
        ({"reader_feature_flags": 1 | 4 | 256, "writer_feature_flags": 1 | 4 | 8 | 32 | 256}, 256, 288),
    ],
)
def test_flags_follow_from_the_content(changes: dict[str, object], reader: int, writer: int) -> None:
    manifest = dataclasses.replace(EMPTY, **changes)  # type: ignore[arg-type]
    assert derived_flags(manifest, stable_row_ids=False) == (reader, writer)
    assert derived_flags(manifest, stable_row_ids=True) == (reader | 2, writer | 2)


def test_flags_have_names() -> None:
    assert feature_names(1 | 2 | 1 << 20) == ["deletion files", "stable row ids", "unknown flag 1048576"]
