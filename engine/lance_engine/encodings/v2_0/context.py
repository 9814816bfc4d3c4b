"""What decoders of 2.0 pages need to know beside their message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_engine.encodings.leaf import LeafShape
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError


@dataclass(frozen=True, slots=True)
class PageContext:
    """A page: (offset, length) of the buffers of the page and of its column, and what the schema says.

    `is_dictionary` tells whether the column has a dictionary type, as opposed to one that is only stored so.
    """

    page_buffers: tuple[tuple[int, int], ...]
    column_buffers: tuple[tuple[int, int], ...]
    shape: LeafShape
    is_dictionary: bool

    def buffer(self, reference: Any) -> tuple[int, int]:
        """The range that a `Buffer` message names."""
        if reference.buffer_type == 2:
            raise UnsupportedFeatureError("A page refers to a buffer of the file, which no known writer does")
        buffers = self.page_buffers if reference.buffer_type == 0 else self.column_buffers
        if reference.buffer_index >= len(buffers):
            raise CorruptFileError(
                f"An encoding refers to buffer {reference.buffer_index}, there are {len(buffers)}"
            )
        return buffers[reference.buffer_index]
