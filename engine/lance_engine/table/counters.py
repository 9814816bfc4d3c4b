"""Limits of the counters of a dataset: a manifest may contain any number, including the largest."""

from __future__ import annotations

from typing import Final, Literal

from lance_engine.errors import UnsupportedFeatureError

# The types in which manifests store them; versions from 2^63 on are those of detached commits.
_LARGEST: Final = {
    "field ids": 2**31 - 1,
    "fragment ids": 2**32 - 1,
    "row ids": 2**64 - 1,
    "versions": 2**63 - 1,
}


def check_counter(
    name: Literal["field ids", "fragment ids", "row ids", "versions"], highest: int, path: str | None = None
) -> None:
    """UnsupportedFeatureError if the highest number that a change would assign cannot be stored."""
    if highest > _LARGEST[name]:
        raise UnsupportedFeatureError(
            f"The dataset has used up its {name}", path=path, remedy="Copy it to a new dataset"
        )
