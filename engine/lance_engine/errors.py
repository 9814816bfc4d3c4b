"""Every error the engine raises on purpose.

All derive from `LanceError`, most also from the builtin they refine. A message says what is wrong, where
(path, version, fragment, column, page as far as known) and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from lance_engine.legible import legible, legible_line, without_secrets


class LanceError(Exception):
    """Base class: catch this to catch every deliberate error of the library.

    `place` holds where the problem is, as keywords such as ``path``, ``version``, ``fragment``, ``column``,
    ``page`` and ``encoding``; `remedy` says what the user can do about it.
    """

    def __init__(self, message: str, *, remedy: str = "", **place: object) -> None:
        self.message = message = without_secrets(message)
        self.remedy = remedy
        self.place = {key: value for key, value in place.items() if value is not None}
        super().__init__(message)

    def __str__(self) -> str:
        text = self.message
        if self.place:
            places = (
                f"{key}: {legible_line(without_secrets(str(value)))}" for key, value in self.place.items()
            )
            text += f" [{', '.join(places)}]"
        if self.remedy:
            text += f". {self.remedy}"
        return legible(text)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the lines of the user's code that led here, and the message.

        The environment variable LANCE_SQL_DEBUG brings the frames of the library back.
        """
        import os
        import traceback

        if os.environ.get("LANCE_SQL_DEBUG"):
            return traceback.format_exception(self)
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if not {"lance_engine", "lance_sql", "IPython", "ipykernel"} & set(frame.filename.split(os.sep))
        ]
        return [*traceback.format_list(frames), f"{type(self).__name__}: {self}"]

    def at(self, **place: object) -> LanceError:
        """Add what an outer layer knows about the place; known parts stay."""
        for key, value in place.items():
            if value is not None:
                self.place.setdefault(key, value)
        return self


class Placed:
    """A block in which `place` translates an error: another error, or None to keep it.

    Blocks that are entered once per column of every fragment: cheaper than a generator.
    """

    __slots__ = ("_details", "_place")

    def __init__(self, place: Callable[..., Exception | None], **details: object) -> None:
        self._place = place
        self._details = details

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        placed = self._place(error, **self._details)
        if placed is not None and placed is not error:
            raise placed from error


class DatasetNotFoundError(LanceError, FileNotFoundError):
    """The path holds no Lance dataset."""

    __str__ = LanceError.__str__


class DatasetExistsError(LanceError, FileExistsError):
    """``mode="create"`` for an existing dataset."""

    __str__ = LanceError.__str__


class StorageAccessError(LanceError, PermissionError):
    """Storage does not know the credentials, or refuses them; the message names where they came from."""

    __str__ = LanceError.__str__


class ExternalAccessError(LanceError, PermissionError):
    """The dataset names a file outside of its root that ``allow_external`` does not allow."""

    __str__ = LanceError.__str__


class StorageError(LanceError, OSError):
    """Storage failed: a full or read-only disk, a lost connection."""

    __str__ = LanceError.__str__


class MissingFileError(LanceError, FileNotFoundError):
    """A file that the dataset needs does not exist."""

    __str__ = LanceError.__str__


class StorageUnavailableError(StorageError, ConnectionError):
    """Storage cannot be reached, does not answer in time, or is too busy; ``place`` names the operation.

    Whether a request that writes was carried out is not known.
    """

    __str__ = LanceError.__str__


class VersionNotFoundError(LanceError, LookupError):
    """The dataset exists, the requested version, tag or point in time does not."""


class TagExistsError(LanceError, ValueError):
    """The tag already exists."""


class BranchExistsError(LanceError, ValueError):
    """The branch already exists."""


class BranchInUseError(LanceError, ValueError):
    """A branch to be deleted is the origin of other branches."""


class ColumnNotFoundError(LanceError, LookupError):
    """A projection, filter or operation names a column that the schema does not have."""


class IndexNotFoundError(LanceError, LookupError):
    """An operation names an index that the table does not have."""


class IndexExistsError(LanceError, ValueError):
    """The index already exists."""


class RowNotFoundError(LanceError, LookupError):
    """A row id is unknown or its row was deleted."""


class PositionOutOfRangeError(RowNotFoundError, IndexError):
    """A position of a row is not below the number of rows."""


class InvalidArgumentError(LanceError, ValueError, TypeError):
    """An argument of the wrong type or form, such as a version that is not a number."""


class CorruptFileError(LanceError, ValueError):
    """A file is truncated or contradicts itself."""


class UnsupportedFeatureError(LanceError, NotImplementedError):
    """A feature flag, file version, page layout or encoding that this release does not know."""


class UnsupportedTypeError(LanceError, TypeError):
    """An Arrow type that the chosen file version cannot hold."""


class SchemaMismatchError(LanceError, ValueError):
    """Data to write does not match the schema of the dataset."""


class InvalidFilterError(LanceError, ValueError):
    """A filter that cannot be parsed or compares values that do not compare."""


class InvalidSearchError(LanceError, ValueError):
    """A search that does not fit its column: it has no vectors, the query another length, and so on."""


class CommitConflictError(LanceError):
    """Another writer committed a change to the same data: read again and redo the work."""


class AmbiguousMergeError(LanceError, ValueError):
    """Several rows of the source of a merge match the same row of the dataset."""


class IncompatibleChangeError(LanceError):
    """Another writer committed something that makes this change impossible; retrying does not help."""
