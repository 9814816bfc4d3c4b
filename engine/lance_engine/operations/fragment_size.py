"""Which fragments compaction joins and rewrites by default."""

from __future__ import annotations

from typing import Final

#: Rows of a fragment that needs no more neighbours.
TARGET_ROWS: Final = 1 << 20
#: Its bytes, whichever is reached first.
TARGET_BYTES: Final = 90 << 30
#: The share of deleted rows above which a fragment is rewritten.
DELETED_SHARE: Final = 0.1
