"""The names of the manifests of a dataset, which determine the version of a file."""

from __future__ import annotations

from enum import Enum
from typing import Final

VERSIONS: Final = "_versions"
ENDING: Final = ".manifest"
MAX_VERSION: Final = 2**64 - 1
V2_LENGTH: Final = 20 + len(ENDING)
# Set in the numbers of versions outside of the history.
DETACHED_BIT: Final = 1 << 63


class NamingScheme(Enum):
    """How manifests are named: by ascending version, or so that the newest sorts first."""

    V1 = 1
    V2 = 2

    def path(self, version: int) -> str:
        """Where the manifest of a version is; detached versions have their own names."""
        if version & DETACHED_BIT:
            name = f"d{version}"
        elif self is NamingScheme.V1:
            name = str(version)
        else:
            name = f"{MAX_VERSION - version:020}"
        return f"{VERSIONS}/{name}{ENDING}"


def parse_manifest_name(name: str) -> tuple[int, NamingScheme] | None:
    """Version and scheme of a manifest by its file name; None for other files and for detached versions."""
    stem = name.removesuffix(ENDING)
    if stem == name or not (stem.isascii() and stem.isdigit()):
        return None
    number = int(stem)
    if len(stem) == 20:
        return (MAX_VERSION - number, NamingScheme.V2) if number <= MAX_VERSION else None
    return number, NamingScheme.V1
