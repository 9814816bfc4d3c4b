"""All errors that the engine raises deliberately.

All derive from `LanceError`, most also from the corresponding builtin. A message describes the problem, its
place (path, version, fragment, column, page as far as known) and the remedy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import TracebackType

from lance_engine.legible import hidden, legible, legible_line, without_secrets


class LanceError(Exception):
    """Base class of all deliberate errors of the library.

    `place` describes where the problem is, with keywords such as ``path``, ``version``, ``fragment``,
    ``column``, ``page`` and ``encoding``; `remedy` is what the user can do about it. Credentials, as in URIs
    with a password or a signature, are removed from all of these, and from notes, where they are set.
    """

    def __init__(self, message: str, *, remedy: str = "", **place: object) -> None:
        self.message = message
        self.remedy = remedy
        self.place: dict[str, object] = {}
        self.at(**place)
        super().__init__(self.message)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, without_secrets(value) if isinstance(value, str) else value)

    def add_note(self, note: str, /) -> None:
        super().add_note(without_secrets(note))

    def __str__(self) -> str:
        text = self.message
        if self.place:
            places = (f"{key}: {legible_line(str(value))}" for key, value in self.place.items())
            text += f" [{', '.join(places)}]"
        if self.remedy:
            text += f". {self.remedy}"
        return legible(text)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the lines of the user's code that led here, and the message.

        The environment variable LANCE_SQL_DEBUG shows the frames of the library again.
        """
        import os
        import traceback

        if os.environ.get("LANCE_SQL_DEBUG"):
            return traceback.format_exception(self)
        left_out = {"lance_engine", "lance_sql", "IPython", "ipykernel"}
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if not left_out & set(frame.filename.split(os.sep))
            # Python's own modules, such as contextlib
            and os.path.dirname(frame.filename) != os.path.dirname(os.__file__)
        ]
        return [*traceback.format_list(frames), f"{type(self).__name__}: {self}"]

    def at(self, **place: object) -> LanceError:
        """Add what an outer layer knows about the place; existing keywords are kept."""
        for key, value in place.items():
            if value is not None:
                self.place.setdefault(key, hidden(value))
        return self


def whole_number(name: str, value: object, least: int = 0, most: int = (1 << 63) - 1) -> int:
    """`value`, which must be a whole number within limits."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidArgumentError(f"{name} must be a whole number, not {value!r}")
    number = operator.index(value)
    if not least <= number <= most:
        limit = f"at least {least}" if number < least else f"at most {most}"
        raise InvalidArgumentError(f"{name} must be {limit}, not {number}")
    return number


class Placed:
    """A context manager in which `place` converts an error: to another error, or None to keep it.

    It is entered once per column of every fragment, and cheaper than a generator.
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
    """The path does not contain a Lance dataset."""

    __str__ = LanceError.__str__


class DatasetExistsError(LanceError, FileExistsError):
    """``mode="create"`` was used for an existing dataset."""

    __str__ = LanceError.__str__


class StorageAccessError(LanceError, PermissionError):
    """Storage rejected the credentials; the message names their source."""

    __str__ = LanceError.__str__


class ExternalAccessError(LanceError, PermissionError):
    """A dataset refers to a file outside of its root, or a statement to a location, that is not allowed.

    ``allow_external`` allows the former, settings such as ``enable_external_access`` the latter.
    """

    __str__ = LanceError.__str__


class StorageError(LanceError, OSError):
    """Storage failed: a full or read-only disk, a lost connection."""

    __str__ = LanceError.__str__


class MissingFileError(LanceError, FileNotFoundError):
    """A file of the dataset does not exist."""

    __str__ = LanceError.__str__


class StorageUnavailableError(StorageError, ConnectionError):
    """Storage is unreachable, too busy or does not answer in time; ``place`` names the operation.

    It is unknown whether a write request was carried out.
    """

    __str__ = LanceError.__str__


class VersionNotFoundError(LanceError, LookupError):
    """The dataset exists, but the requested version, tag or point in time does not."""


class TagExistsError(LanceError, ValueError):
    """The tag already exists."""


class BranchExistsError(LanceError, ValueError):
    """The branch already exists."""


class BranchInUseError(LanceError, ValueError):
    """A branch cannot be deleted because other branches were created from it."""


class ColumnNotFoundError(LanceError, LookupError):
    """A projection, filter or operation names a column that the schema does not have."""


class IndexNotFoundError(LanceError, LookupError):
    """An operation names an index that the table does not have."""


class IndexExistsError(LanceError, ValueError):
    """The index already exists."""


class RowNotFoundError(LanceError, LookupError):
    """A row id is unknown or its row was deleted."""


class PositionOutOfRangeError(RowNotFoundError, IndexError):
    """The position of a row is not less than the number of rows."""


class InvalidArgumentError(LanceError, ValueError, TypeError):
    """An argument of the wrong type or form, such as a version that is not a number."""


class CorruptFileError(LanceError, ValueError):
    """A file is truncated or inconsistent."""


class UnsupportedFeatureError(LanceError, NotImplementedError):
    """A feature flag, file version, page layout or encoding that this release does not support."""


class UnsupportedTypeError(LanceError, TypeError):
    """An Arrow type that the selected file version cannot store."""


class SchemaMismatchError(LanceError, ValueError):
    """Data to write does not match the schema of the dataset."""


class ConstraintError(LanceError, ValueError):
    """Rows violate a PRIMARY KEY, UNIQUE or CHECK constraint of the table, or a condition of MERGE."""


class InvalidFilterError(LanceError, ValueError):
    """A filter that cannot be parsed, or that compares incompatible types."""


class InvalidSearchError(LanceError, ValueError):
    """A search that does not match its column, such as a query vector of the wrong length."""


class CommitConflictError(LanceError):
    """Another writer committed a change to the same data: read the data again and retry."""


class AmbiguousMergeError(LanceError, ValueError):
    """Several rows of a merge source match the same row of the dataset."""


class IncompatibleChangeError(LanceError):
    """Another writer committed a change that makes this one impossible; retrying does not help."""
