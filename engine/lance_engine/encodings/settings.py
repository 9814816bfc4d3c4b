"""Per-column encoding hints, from the metadata of the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lance_engine.schema_tree import Field

_PREFIX = "lance-encoding:"
GENERAL_SCHEMES = ("lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Settings:
    """The keys ``lance-encoding:...`` of a leaf field (format 2.1, field metadata).

    Invalid values are ignored, as in the format's other writers.
    """

    compression: str = ""
    """``lz4``, ``zstd``, ``fsst``, ``none``; empty: the profile decides."""
    level: int | None = None
    structure: str = ""
    """``miniblock`` or ``fullzip``; empty: by the size of the values."""
    run_threshold: float = 1.0
    """Run lengths are used where there are fewer runs than this share of the values."""
    byte_split: str = "auto"
    dictionary_divisor: int = 2
    """A dictionary has at most one item for so many values."""
    dictionary_ratio: float = 0.8
    """A dictionary and its indices take at most this share of the plain values."""
    dictionary_compression: str = "lz4"
    dictionary_level: int | None = None
    chunk_bytes: int | None = None

    @property
    def general(self) -> str:
        """The requested general compression, if any."""
        return self.compression if self.compression in GENERAL_SCHEMES else ""

    @classmethod
    def of(cls, leaf: Field, top: Field) -> Settings:
        """The settings of a leaf; its top-level field may set the structural encoding."""
        metadata = leaf.metadata
        if not metadata and not top.metadata:
            return _DEFAULT
        return cls(
            compression=_one_of(metadata, "compression", (*GENERAL_SCHEMES, "fsst", "none"), ""),
            level=_integer(metadata, "compression-level"),
            structure=_one_of(
                {**top.metadata, **metadata}, "structural-encoding", ("miniblock", "fullzip"), ""
            ),
            run_threshold=_number(metadata, "rle-threshold", 1.0),
            byte_split=_one_of(metadata, "bss", ("on", "off", "auto"), "auto"),
            dictionary_divisor=max(1, _integer(metadata, "dict-divisor") or 2),
            dictionary_ratio=_number(metadata, "dict-size-ratio", 0.8),
            dictionary_compression=_one_of(
                metadata, "dict-values-compression", (*GENERAL_SCHEMES, "none"), "lz4"
            ),
            dictionary_level=_integer(metadata, "dict-values-compression-level"),
            chunk_bytes=_integer(metadata, "minichunk-size"),
        )


_DEFAULT = Settings()


def _one_of(metadata: Mapping[str, str], key: str, known: tuple[str, ...], default: str) -> str:
    value = metadata.get(_PREFIX + key, "").lower()
    return value if value in known else default


def _integer(metadata: Mapping[str, str], key: str) -> int | None:
    try:
        return int(metadata[_PREFIX + key])
    except (KeyError, ValueError):
        return None


def _number(metadata: Mapping[str, str], key: str, default: float) -> float:
    """A share greater than 0 and at most 1."""
    try:
        value = float(metadata[_PREFIX + key])
    except (KeyError, ValueError):
        return default
    return value if 0 < value <= 1 else default
