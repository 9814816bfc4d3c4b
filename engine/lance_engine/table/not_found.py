"""The error for a path without a dataset, with a suggestion."""

from __future__ import annotations

import os

from lance_engine.errors import DatasetNotFoundError
from lance_engine.io.manifest_names import VERSIONS
from lance_engine.io.store import Store
from lance_engine.spelling import nearest

_MOST_NAMES = 8

_OTHER_FORMAT = (
    "A Lance dataset is a directory with the folder _versions. For Parquet, CSV or JSON files, use "
    "lance_sql.write('data.parquet', 'data.lance') to create one, or lance_sql.sql(\"FROM 'data.parquet'\")"
)


def dataset_not_found(store: Store) -> DatasetNotFoundError:
    """The error for a `store` without a dataset.

    On a local disk it suggests the dataset next to the path with the most similar name, or lists the datasets
    in the directory that the path names. Object stores are not listed for it.
    """
    return DatasetNotFoundError(
        "No Lance dataset at this path", path=store.uri, remedy=_remedy(store.local_path(VERSIONS))
    )


def _remedy(versions: str | None) -> str:
    usual = "Check the path or create the dataset"
    if versions is None:
        return usual
    place = os.path.dirname(versions)
    inside = _datasets(place)
    if inside:
        more = ", ..." if len(inside) > _MOST_NAMES else ""
        return f"It is a directory of datasets: {', '.join(inside[:_MOST_NAMES])}{more}"
    if os.path.isfile(place) or _holds_data_files(place):
        return _OTHER_FORMAT
    beside, name = os.path.split(place)
    near = nearest(name, _datasets(beside))
    return f"Did you mean {os.path.join(beside, near)}?" if near else usual


def _holds_data_files(directory: str) -> bool:
    """Whether a directory has files of another format."""
    try:
        with os.scandir(directory) as entries:
            return any(entry.name.endswith((".parquet", ".csv", ".ndjson", ".jsonl")) for entry in entries)
    except OSError:
        return False


def _datasets(directory: str) -> list[str]:
    """The names of the datasets in a directory; none if it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return sorted(
                entry.name for entry in entries if os.path.isdir(os.path.join(entry.path, VERSIONS))
            )
    except OSError:
        return []
