"""Checks before a local file of a dataset is opened: it may come from an untrusted source."""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import Final

from lance_engine.errors import (
    CorruptFileError,
    LanceError,
    MissingFileError,
    StorageAccessError,
    StorageError,
)
from lance_engine.io.external_access import ExternalAccess, is_below, refused

_NOT_A_FILE: Final = frozenset({errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ENXIO})


def reachable(root: str, path: str, access: ExternalAccess | None) -> str:
    """The full path of `path` below `root`, unless a link that is not allowed leads out of `root`.

    `access` decides which links are allowed; with None, used to list and remove files, no link is.
    """
    full = root
    for part in path.split("/"):
        full = f"{full}{os.sep}{part}"
        try:
            mode = os.lstat(full).st_mode
        except OSError:
            break  # a missing file is not a link
        if stat.S_ISLNK(mode):
            _check_link(root, f"{root}{os.sep}{path}", access)
            break
    return f"{root}{os.sep}{path}"


def _check_link(root: str, full: str, access: ExternalAccess | None) -> None:
    if is_below(root, full):
        return
    target = os.path.realpath(full)
    if access is None:
        raise StorageAccessError(
            f"'{full}' is behind a symbolic link that points outside the dataset, to '{target}': files "
            f"there are neither listed nor removed",
            path=root,
            remedy="Remove the link, or replace it with the files",
        )
    if not access.allows_link(target):
        raise refused(root, "What a symbolic link leads to", target)


def check_is_file(path: str, mode: int) -> None:
    """CorruptFileError for anything but a regular file: reading a pipe or a device may take forever."""
    if not stat.S_ISREG(mode):
        kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
        kind = next((name for test, name in kinds if test(mode)), "a device")
        raise CorruptFileError(f"Expected a file, found {kind}", path=path)


class LocalErrors:
    """A block that converts errors of the operating system; `writing` says what to do about them."""

    __slots__ = ("_path", "_writing")

    def __init__(self, path: str, *, writing: bool = False) -> None:
        self._path = path
        self._writing = writing

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError) and not isinstance(error, LanceError | FileExistsError):
            raise local_error(error, self._path, writing=self._writing) from error


def local_error(error: OSError, path: str, *, writing: bool = False) -> LanceError:
    """Translates an error of the operating system for a file of a dataset."""
    reason = error.strerror or str(error) or type(error).__name__
    if writing and (isinstance(error, FileNotFoundError) or error.errno in _NOT_A_FILE):
        problem = StorageError(
            f"Cannot create the file: {reason}",
            path=path,
            remedy="Check that the path is in a folder in which files can be created, or write to another "
            "location",
        )
        problem.errno = error.errno
        return problem
    if isinstance(error, FileNotFoundError):
        return MissingFileError(
            "A file of the dataset is missing",
            path=path,
            remedy="Restore the file from a backup, or use a version that does not need it",
        )
    if isinstance(error, PermissionError):
        return StorageAccessError(
            f"Permission denied: {reason}",
            path=path,
            remedy="Check the owner and the permissions of the dataset",
        )
    if error.errno in _NOT_A_FILE:
        return CorruptFileError(f"Invalid path for a dataset file: {reason}", path=path)
    problem = StorageError(
        f"Disk error: {reason}", path=path, remedy=_REMEDIES.get(error.errno or 0, "Check the disk")
    )
    problem.errno = error.errno
    return problem


_REMEDIES: Final = {
    errno.ENOSPC: "Free some disk space and retry",
    errno.EDQUOT: "Free some space in the quota and retry",
    errno.EROFS: "The file system is read-only: write to another location",
    errno.EMFILE: "Raise the open file limit (ulimit -n), or close datasets",
    errno.ENFILE: "Raise the open file limit of the system",
}
