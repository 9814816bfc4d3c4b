"""Feature flags: bits in a manifest for features that a reader or a writer must support."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.fragment import Fragment
from lance_engine.format.fragment_list import FragmentList
from lance_engine.format.manifest import Manifest


class Masks(Enum):
    """Which of the two masks may contain a bit."""

    ANY = "any"
    BOTH = "in both masks or in neither"
    WRITER = "in the writer mask only"


class Feature(NamedTuple):
    """One bit of the flag masks."""

    bit: int
    name: str
    readable: bool = False
    writable: bool = False
    masks: Masks = Masks.ANY


DELETION_FILES = 1
STABLE_ROW_IDS = 2
TABLE_CONFIG = 8
BASE_PATHS = 16
NO_TRANSACTION_FILES = 32
MIXED_FILE_VERSIONS = 256
SPILLED_ROW_LINEAGE = 2048

FEATURES = (
    Feature(DELETION_FILES, "deletion files", readable=True, writable=True),
    Feature(STABLE_ROW_IDS, "stable row ids", readable=True, writable=True),
    Feature(4, "old v2 format", readable=True, writable=True),
    Feature(TABLE_CONFIG, "table config", readable=True, writable=True),
    Feature(BASE_PATHS, "base paths", readable=True, writable=True),
    Feature(NO_TRANSACTION_FILES, "transaction files disabled", readable=True, writable=True),
    Feature(64, "data overlay files"),
    # Indices with additional columns are scanned; how to update them for a new version is unknown.
    Feature(128, "covered index metadata", readable=True),
    Feature(MIXED_FILE_VERSIONS, "mixed data file versions", readable=True, writable=True, masks=Masks.BOTH),
    # Indices that it moves rows for cover fragments that are gone: their rows are scanned.
    Feature(1024, "new-style fragment reuse", readable=True, masks=Masks.BOTH),
    Feature(SPILLED_ROW_LINEAGE, "spilled row lineage", readable=True, writable=True),
    # The descriptors of managed blobs are a separate kind: reading one is refused, the rest is not.
    Feature(16384, "managed blobs", readable=True, masks=Masks.BOTH),
    Feature(32768, "field ids that are never reused", readable=True, masks=Masks.WRITER),
    Feature(65536, "zone write seed", masks=Masks.BOTH),
)
_BY_BIT = {feature.bit: feature for feature in FEATURES}
# Set by the first writer that needs them, and never cleared.
_STICKY = MIXED_FILE_VERSIONS | NO_TRANSACTION_FILES


def check_readable(manifest: Manifest) -> None:
    """UnsupportedFeatureError with the unsupported features that reading needs."""
    for feature in FEATURES:
        in_reader = bool(manifest.reader_feature_flags & feature.bit)
        in_writer = bool(manifest.writer_feature_flags & feature.bit)
        if (feature.masks is Masks.BOTH and in_reader != in_writer) or (
            feature.masks is Masks.WRITER and in_reader
        ):
            raise CorruptFileError(
                f"The feature flag '{feature.name}' must be {feature.masks.value}", version=manifest.version
            )
    unknown = [bit for bit in _bits(manifest.reader_feature_flags) if not _known(bit).readable]
    if unknown:
        raise UnsupportedFeatureError(
            f"The dataset uses features that this release cannot read: {_names(unknown)}",
            version=manifest.version,
            remedy="Use a newer release, or an older version of the dataset",
        )


def check_writable(manifest: Manifest) -> None:
    """UnsupportedFeatureError with the unsupported features that committing needs.

    Changes call it before they write anything.
    """
    unknown = [bit for bit in _bits(manifest.writer_feature_flags) if not _known(bit).writable]
    if unknown:
        raise UnsupportedFeatureError(
            f"The dataset uses features that this release cannot write: {_names(unknown)}",
            version=manifest.version,
            remedy="The dataset can still be read. To write, use the program that created it",
        )
    if manifest.storage_version is None and manifest.fragments:
        raise UnsupportedFeatureError(
            "The dataset has data files of several versions, and does not record which one new files have",
            version=manifest.version,
            remedy="The dataset can still be read: write its rows to a new dataset",
        )


def derived_flags(manifest: Manifest, *, stable_row_ids: bool) -> tuple[int, int]:
    """The (reader, writer) flags of a new manifest: from its content, and those that are never cleared."""
    both = STABLE_ROW_IDS if stable_row_ids else 0
    checked: Iterable[Fragment] = manifest.fragments
    if isinstance(manifest.fragments, FragmentList):
        if manifest.fragments.any_deletions():
            both |= DELETION_FILES
        if manifest.reader_feature_flags & SPILLED_ROW_LINEAGE and manifest.fragments.any_spilled():
            both |= SPILLED_ROW_LINEAGE
        # For the fragments that were there, the flags of the manifest before say it; their files had the
        # version of the dataset, or the flag for mixed versions, which stays, is set.
        if manifest.storage_version is not None:
            checked = manifest.fragments.added
    elif any(fragment.deletion_file for fragment in manifest.fragments):
        both |= DELETION_FILES
    if any(fragment.has_spilled_lineage for fragment in checked):
        both |= SPILLED_ROW_LINEAGE
    if manifest.base_paths:
        both |= BASE_PATHS
    if any(
        file.storage_version != manifest.storage_version for fragment in checked for file in fragment.files
    ):
        both |= MIXED_FILE_VERSIONS
    reader = both | manifest.reader_feature_flags & _STICKY
    writer = both | manifest.writer_feature_flags & _STICKY
    return reader, writer | (TABLE_CONFIG if manifest.config else 0)


def feature_names(flags: int) -> list[str]:
    """The names of the bits set, unknown ones by their value."""
    return [_known(bit).name for bit in _bits(flags)]


def _bits(flags: int) -> list[int]:
    return [1 << shift for shift in range(flags.bit_length()) if flags >> shift & 1]


def _known(bit: int) -> Feature:
    return _BY_BIT.get(bit) or Feature(bit, f"unknown flag {bit}")


def _names(bits: list[int]) -> str:
    return ", ".join(f"{_known(bit).name} ({bit})" for bit in bits)
