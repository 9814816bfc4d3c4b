"""Reads and writes the deleted rows of fragments."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from lance_engine.errors import CorruptFileError, LanceError
from lance_engine.fetch import requests_in_flight
from lance_engine.format.deletion import DeletedOffsets, decode_deletions, encode_deletions, preferred_kind
from lance_engine.format.fragment import DeletionFile, DeletionKind, Fragment
from lance_engine.io.store import Store
from lance_engine.metrics import count_read
from lance_engine.tasks import Pool

DELETIONS: Final = "_deletions"

Result = TypeVar("Result")


def read_deletions(store: Store, path: str, fragment: Fragment, deletion: DeletionFile) -> DeletedOffsets:
    """The deleted offsets of a fragment.

    A missing or damaged file is a CorruptFileError: never ignored. The number of deleted rows in the manifest
    is not used.
    """
    try:
        try:
            data = store.read(path)
            if store.local_path(path) is None:
                count_read(1, len(data))
        except FileNotFoundError:
            raise CorruptFileError("The deletion file does not exist") from None
        return decode_deletions(data, deletion.kind, fragment.physical_rows)
    except LanceError as error:
        raise error.at(path=f"{store.uri}/{path}", fragment=fragment.id) from None


def write_deletions(
    store: Store,
    fragment_id: int,
    offsets: npt.NDArray[np.uint32],
    read_version: int,
    *,
    kind: DeletionKind | None = None,
) -> DeletionFile:
    """Write all deleted offsets of a fragment, ascending, to a new file."""
    kind = preferred_kind(len(offsets)) if kind is None else kind
    deletion = DeletionFile(kind, read_version, int.from_bytes(os.urandom(8), "little"), len(offsets))
    store.put(deletion_path(fragment_id, deletion), encode_deletions(offsets, kind))
    return deletion


def deletion_path(fragment_id: int, deletion: DeletionFile) -> str:
    """The path of a deletion file below the root of its dataset."""
    return f"{DELETIONS}/{deletion.file_name(fragment_id)}"


def of_fragments(
    work: Callable[[int], Result], fragment_ids: Collection[int], *, is_local: bool
) -> list[Result]:
    """Read and write the deletion files of fragments: those of a remote dataset concurrently."""
    if is_local or len(fragment_ids) < 2:
        return list(map(work, fragment_ids))
    with Pool(min(len(fragment_ids), requests_in_flight()), "lance-delete") as pool:
        return list(pool.map(work, fragment_ids))
