"""Default limits for the fragments that compaction merges and rewrites."""

from __future__ import annotations

from typing import Final

#: Minimum rows of a fragment that is not merged.
TARGET_ROWS: Final = 1 << 20
#: Its minimum size in bytes; either is sufficient.
TARGET_BYTES: Final = 90 << 30
#: The share of deleted rows above which a fragment is rewritten.
DELETED_SHARE: Final = 0.1
