"""What decoders of 0.1 pages need to know besides their page."""

from __future__ import annotations

from dataclasses import dataclass

from lance_engine.encodings.leaf import LeafShape
from lance_engine.format.legacy import Page, StoredDictionary


@dataclass(frozen=True, slots=True)
class PageContext:
    """A column of a file of `file_size` bytes.

    `shape` is that of the values. Where pages hold numbers of them, `index_bits` wide, `dictionary` says
    where the values are. `nullable` says what the schema declares: no page stores which values are null.
    """

    file_size: int
    shape: LeafShape
    nullable: bool
    dictionary: StoredDictionary | None = None
    index_bits: int = 0

    def buffer(self, page: Page, bits: int) -> tuple[int, int]:
        """(offset, length) of the values of a page, each `bits` wide; no more than the file has."""
        return page.position, min(-(-page.length * bits // 8), self.file_size - page.position)
