"""Data files with the same columns, read as if their rows were in one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from lance_engine import kernels
from lance_engine.encodings.leaf import LeafShape
from lance_engine.file.contents import FileContents, fetched_whole
from lance_engine.format.container import FOOTER_SIZE
from lance_engine.metrics import count_read

#: Path, size in the manifest, and number of rows of a file.
FilePlace = tuple[str, int | None, int]


class FileGroup:
    """Files of version 2.1 or 2.2 in memory; the kernels parse their column metadata.

    Anything unknown or invalid is a kernel error without details: reading the files one by one reports them.
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
        """Small files of a store with their row counts: those not fetched yet are fetched completely."""
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
