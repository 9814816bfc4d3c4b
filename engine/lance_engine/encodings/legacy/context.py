"""The information that decoders of 0.1 pages need in addition to the page."""

from __future__ import annotations

from dataclasses import dataclass

from lance_engine.encodings.leaf import LeafShape
from lance_engine.format.legacy import Page, StoredDictionary


@dataclass(frozen=True, slots=True)
class PageContext:
    """A column of a file of `file_size` bytes.

    `shape` is the shape of the values. For pages with indices, `index_bits` wide, `dictionary` is the
    position of the values. `nullable` comes from the schema: pages do not store which values are null.
    """

    file_size: int
    shape: LeafShape
    nullable: bool
    dictionary: StoredDictionary | None = None
    index_bits: int = 0

    def buffer(self, page: Page, bits: int) -> tuple[int, int]:
        """(offset, length) of the values of a page, `bits` wide each, within the bounds of the file."""
        return page.position, min(-(-page.length * bits // 8), self.file_size - page.position)
