"""The inputs, besides the values, for choosing the encoding of a page of a leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from lance_engine.encodings.leaves import Leaf
from lance_engine.encodings.page import Page
from lance_engine.encodings.profile import Profile
from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_1.candidate import Candidate
from lance_engine.encodings.values import FixedValues, Strings
from lance_engine.kernels import Levels

# Smaller pages are not compressed.
COMPRESS_MIN_BYTES = 4096
# Maximum chunk size that a field can request.
_MAX_CHUNK_BYTES = 16 << 10

_Values = TypeVar("_Values", contravariant=True)


class ChunkEncoding(Protocol[_Values]):
    """The module of an encoding of values in chunks.

    It also has a function ``describe``, which creates the encoding message of the page.
    """

    def estimate(self, context: PageContext, values: _Values, /) -> Candidate | None:
        """The cost of the values; None if the encoding is not applicable."""


class PageKind(Protocol):
    """The module of a kind of pages."""

    def page(self, context: PageContext, /) -> Page | None:
        """The rows of a leaf as a page; None if this kind of page is not applicable."""


@dataclass(frozen=True, slots=True)
class Table:
    """The kinds of pages in the order in which they are tried, and the encodings of values in chunks.

    Of these the first is the plain one.
    """

    pages: tuple[PageKind, ...]
    numbers: tuple[ChunkEncoding[FixedValues], ...]
    strings: tuple[ChunkEncoding[Strings], ...]


@dataclass(frozen=True, slots=True)
class PageContext:
    """A leaf over a range of rows. With `must_zip` its levels do not fit into chunks."""

    leaf: Leaf
    version: tuple[int, int]
    profile: Profile
    settings: Settings
    table: Table
    must_zip: bool = False

    @property
    def levels(self) -> Levels:
        return self.leaf.levels

    @property
    def full_zip(self) -> bool:
        return self.must_zip or self.settings.structure == "fullzip"

    @property
    def wide_chunks(self) -> bool:
        """Whether a chunk has enough room for levels, which is the case if every entry has a value."""
        return self.levels.entries == self.levels.slots

    def schemes(self, size: int) -> tuple[str, ...]:
        """General compressions to try for `size` bytes."""
        if size < COMPRESS_MIN_BYTES or self.settings.compression in ("none", "fsst"):
            return ()
        return (self.settings.general,) if self.settings.general else self.profile.schemes

    @property
    def string_chunk_bytes(self) -> int | None:
        """The chunk size for strings that the field requests."""
        wish = self.settings.chunk_bytes
        return min(wish, _MAX_CHUNK_BYTES) if wish else None
