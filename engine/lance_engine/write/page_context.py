"""What the choice for one page of a leaf depends on, beside the values."""

from __future__ import annotations

from dataclasses import dataclass

from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import Dictionary, EncodedPage
from lance_engine.kernels import Levels
from lance_engine.write.candidate import Candidate
from lance_engine.write.leaves import Leaf
from lance_engine.write.profile import Profile
from lance_engine.write.settings import Settings

# Pages with less than this are not compressed.
COMPRESS_MIN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class PageContext:
    """One leaf over one range of rows. With `must_zip` its levels do not fit into chunks."""

    leaf: Leaf
    version: tuple[int, int]
    profile: Profile
    settings: Settings
    must_zip: bool

    @property
    def levels(self) -> Levels:
        return self.leaf.levels

    @property
    def full_zip(self) -> bool:
        return self.must_zip or self.settings.structure == "fullzip"

    @property
    def wide_chunks(self) -> bool:
        """Whether levels leave room in a chunk: so it is when every entry has a value."""
        return self.levels.entries == self.levels.slots

    def schemes(self, size: int) -> tuple[str, ...]:
        """General compressions to try on `size` bytes."""
        if size < COMPRESS_MIN_BYTES or self.settings.compression in ("none", "fsst"):
            return ()
        return (self.settings.general,) if self.settings.general else self.profile.schemes

    def mini_block(self, chosen: Candidate, dictionary: Dictionary | None = None) -> EncodedPage:
        values, encoding = chosen.build()
        return v2_1.mini_block_page(
            values, encoding, self.levels, large_chunks=self.version >= (2, 2), dictionary=dictionary
        )
