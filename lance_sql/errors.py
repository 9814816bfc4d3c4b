"""Error classes of the SQL layer, in addition to those of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lance_engine.base import legible_text, without_secrets
from lance_engine.errors import DatasetNotFoundError, LanceError

#: The position of an error at the end of the statement.
THE_END: Final = (-1, -1)


class SqlError(LanceError, ValueError):
    """The SQL engine rejected a statement or failed while running it; the message is the engine's.

    `pointer` is the line of the statement with a marker below the position, if the engine reports it;
    `position` is this line and the column, from 1, if the engine reports these. `unexpected` is the word at
    which it stopped to read the statement.
    """

    pointer = ""
    unexpected = ""
    position: tuple[int, int] | None = None

    def __setattr__(self, name: str, value: object) -> None:
        # The marker would be below another position where credentials are left out.
        is_changed = name == "pointer" and without_secrets(str(value)) != value
        super().__setattr__(name, "" if is_changed else value)

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\n{legible_text(self.pointer)}" if self.pointer else text


class TableNotFoundError(DatasetNotFoundError):
    """A statement names a table that does not exist: `name`."""

    def __init__(self, name: str, *, remedy: str = "", **place: object) -> None:
        super().__init__(_not_found(name), remedy=remedy, **place)
        self.name = name

    def rename(self, name: str) -> None:
        """Name the table so."""
        self.message, self.name = _not_found(name), name


def _not_found(name: str) -> str:
    return f"Table {name!r} not found"


class EngineNotInstalledError(LanceError, ImportError):
    """The SQL engine is unknown, or its package is not installed."""

    __str__ = LanceError.__str__


class PackageNotInstalledError(LanceError, ImportError):
    """A package is missing, such as pandas for a result, or PyTorch for `lance_sql.torch`."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import here what the extra `name` of this package installs: without it, the error says how."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise PackageNotInstalledError(
            f"lance_sql.{name} needs the package {error.name}",
            remedy=f"Install it with: pip install 'lance-sql[{name}]'",
        ) from None
