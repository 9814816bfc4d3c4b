"""Reading which rows of a fragment are deleted."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from lance_engine.errors import CorruptFileError, LanceError
from lance_engine.format.deletion import decode_deletions
from lance_engine.format.manifest import DeletionFile, Fragment
from lance_engine.io import Store

DELETIONS: Final = "_deletions"


def read_deletions(
    store: Store, path: str, fragment: Fragment, deletion: DeletionFile
) -> npt.NDArray[np.uint32]:
    """The deleted offsets of a fragment, ascending.

    A missing or damaged file, or one that contradicts the manifest, is a CorruptFileError: never ignored.
    """
    try:
        try:
            data = store.read(path)
        except FileNotFoundError:
            raise CorruptFileError("The deletion file does not exist") from None
        offsets = decode_deletions(data, deletion.kind, fragment.physical_rows)
        if deletion.num_deleted_rows is not None and deletion.num_deleted_rows != len(offsets):
            raise CorruptFileError(
                f"The deletion file has {len(offsets)} rows, the manifest says {deletion.num_deleted_rows}"
            )
    except LanceError as error:
        raise error.at(path=f"{store.uri}/{path}", fragment=fragment.id) from None
    return offsets
