"""Versions that a worker of Spark keeps from task to task, with the metadata that was read of them."""

from __future__ import annotations

import threading
from typing import Final

from lance_engine.dataset import DatasetVersion

from lance_sql.spark.options import Options

_MOST_KEPT: Final = 8
# The metadata of more fragments takes too much memory to stay.
_MOST_FRAGMENTS: Final = 64

_kept: list[DatasetVersion] = []
_lock = threading.Lock()


def open_kept(options: Options) -> DatasetVersion:
    """The version that `options` ask for, as an earlier task of this process left it if that is the same.

    The manifest is read each time: a dataset may be dropped and made again with the same version number.
    """
    opened = options.open()
    if len(opened.snapshot.fragments) > _MOST_FRAGMENTS:
        return opened
    with _lock:
        kept = next((dataset for dataset in _kept if _is_same(dataset, opened)), opened)
        if kept in _kept:
            _kept.remove(kept)
        _kept.append(kept)
        del _kept[:-_MOST_KEPT]
        return kept


def _is_same(one: DatasetVersion, other: DatasetVersion) -> bool:
    left, right = one.snapshot, other.snapshot
    return (
        left.uri == right.uri
        and left.storage_options == right.storage_options
        and left.manifest == right.manifest
        and left.index_section == right.index_section
    )
