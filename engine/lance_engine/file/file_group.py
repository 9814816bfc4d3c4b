"""Data files with the same columns, read as if the rows of one followed those of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from lance_engine import kernels
from lance_engine.encodings.leaf import LeafShape
from lance_engine.file.contents import FileContents, fetched_whole
from lance_engine.format.container import FOOTER_SIZE
from lance_engine.metrics import count_read

#: Path, size as the manifest knows it, and number of rows of a file.
FilePlace = tuple[str, int | None, int]


class FileGroup:
    """Files of version 2.1 or 2.2 that are in memory; the kernels read what they say about their columns.

    Whatever these do not know, and every fault, is an error of the kernels, which does not say what it is:
    reading the files one by one does.
    """

    def __init__(self, files: kernels.DataFiles) -> None:
        self._files = files

    @classmethod
    def mapped(cls, places: Sequence[FilePlace]) -> Self:
        """Local files."""
        count_read(0, FOOTER_SIZE * len(places))
        return cls(kernels.DataFiles([(path, size or 0, rows) for path, size, rows in places]))

    @classmethod
    def fetched(cls, files: Sequence[FileContents], rows: Sequence[int]) -> Self:
        """Small files of a store, with as many rows: what was not fetched before is fetched as a whole."""
        sources = fetched_whole(files)
        return cls(kernels.DataFiles(list(zip(sources, rows, strict=True))))

    @property
    def is_local(self) -> bool:
        """True: nothing needs to be fetched."""
        return True

    def leaf_column(
        self, index: int, name: str, shape: LeafShape, layers: Sequence[str], per_row: int
    ) -> kernels.LeafColumn:
        """A column of the files, `per_row` items of which make a row."""
        column, read = self._files.leaf_column(
            name, shape.kind, shape.width, shape.dims, layers, index, per_row
        )
        count_read(0, read)
        return column
