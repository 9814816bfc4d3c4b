"""Columns that tables of some statements have in addition to those of their dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lance_engine.scan import CodeColumn


class AddedColumns(NamedTuple):
    """What is added to the table that statements call `of`, after all of its columns."""

    of: str
    coded: tuple[CodeColumn, ...] = ()
