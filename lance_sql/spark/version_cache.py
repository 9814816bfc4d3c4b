"""A cache of the versions that the last tasks of a Spark worker read, with their metadata."""

from __future__ import annotations

import threading
from typing import Final

from lance_engine.dataset import DatasetVersion

from lance_sql.spark.options import Options

_MOST: Final = 8
# The metadata of more fragments takes too much memory to stay.
_MOST_FRAGMENTS: Final = 64

_cached: list[DatasetVersion] = []
_lock = threading.Lock()


def open_cached(options: Options) -> DatasetVersion:
    """The version that `options` ask for, as an earlier task of this process left it if that is the same.

    The manifest is read each time: a dataset may be dropped and made again with the same version number.
    """
    opened = options.open()
    if len(opened.snapshot.fragments) > _MOST_FRAGMENTS:
        return opened
    with _lock:
        cached = next((dataset for dataset in _cached if _is_same(dataset, opened)), opened)
        if cached in _cached:
            _cached.remove(cached)
        _cached.append(cached)
        del _cached[:-_MOST]
        return cached


def _is_same(one: DatasetVersion, other: DatasetVersion) -> bool:
    left, right = one.snapshot, other.snapshot
    return (
        left.uri == right.uri
        and left.storage_options == right.storage_options
        and left.manifest == right.manifest
        and left.index_section == right.index_section
    )
