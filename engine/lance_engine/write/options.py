"""The options of writing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from lance_engine.encodings.profile import PROFILES, ProfileName
from lance_engine.errors import InvalidArgumentError, UnsupportedFeatureError, whole_number

# Called with the rows and bytes written so far.
Progress = Callable[[int, int], None]

ZoneMapForm = Literal["compatible", "strict"]

DEFAULT_VERSION = "2.1"
# Used automatically if a column needs it.
NEXT_VERSION = "2.2"
_COUNTS = ("max_rows_per_file", "max_bytes_per_file", "page_bytes", "buffer_bytes", "threads", "zone_rows")
VERSIONS = {"2.0": (2, 0), "2.1": (2, 1), "2.2": (2, 2)}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Limits for the files and pages to write.

    A file ends when it reaches `max_rows_per_file` or `max_bytes_per_file`; rows are not split. `page_bytes`
    is the Arrow size at which a column's rows become a page; all columns together buffer about
    `buffer_bytes`. `threads` encode pages of different columns in parallel. `file_tag` becomes part of every
    file name, including temporary ones, so that the files of a failed job can be found. `zone_maps` adds
    minimum, maximum and null count of every `zone_rows` rows to ordered columns; `zone_index` selects the
    form: next to columns with a plain encoding (``compatible``), or as the encoding `zone_index` of the
    format (``strict``, version 2.0 only), which pylance cannot read. `profile` is the optimization goal:
    small files (``size``), fast scans (``speed``), or both (``balanced``).
    """

    data_storage_version: str = DEFAULT_VERSION
    max_rows_per_file: int = 1 << 20
    max_bytes_per_file: int = 90 << 30
    page_bytes: int = 8 << 20
    buffer_bytes: int = 512 << 20
    threads: int = 2
    file_tag: str = ""
    zone_maps: bool = True
    zone_rows: int = 8192
    zone_index: ZoneMapForm = "compatible"
    profile: ProfileName = "balanced"
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name in _COUNTS:
            whole_number(name, getattr(self, name), 1)
        if self.zone_rows >= 1 << 32:
            raise InvalidArgumentError(f"zone_rows must be less than 2^32, not {self.zone_rows}")
        if self.zone_index not in get_args(ZoneMapForm):
            raise InvalidArgumentError(
                f'zone_index must be "compatible" or "strict", not {self.zone_index!r}'
            )
        if self.profile not in PROFILES:
            raise InvalidArgumentError(f"profile must be one of {', '.join(PROFILES)}, not {self.profile!r}")
        if self.data_storage_version not in VERSIONS:
            raise UnsupportedFeatureError(
                f"Writing data files of version {self.data_storage_version} is not supported",
                remedy="Choose data_storage_version " + " or ".join(f'"{name}"' for name in VERSIONS),
            )

        if self.zone_index == "strict" and self.version != (2, 0):
            raise UnsupportedFeatureError(
                f"Columns of version {self.data_storage_version} do not support the encoding zone_index",
                remedy='Choose data_storage_version="2.0", or zone_index="compatible"',
            )

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor number of the file version."""
        return VERSIONS[self.data_storage_version]
