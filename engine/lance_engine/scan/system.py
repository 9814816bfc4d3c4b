"""Columns that every dataset has without storing them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

ROW_ID: Final = "_rowid"
ROW_ADDRESS: Final = "_rowaddr"
ROW_CREATED_AT: Final = "_row_created_at_version"
ROW_LAST_UPDATED_AT: Final = "_row_last_updated_at_version"

#: What no column of the data can be called; other implementations also know ``_rowoffset``.
RESERVED_NAMES: Final = frozenset({ROW_ID, ROW_ADDRESS, ROW_CREATED_AT, ROW_LAST_UPDATED_AT, "_rowoffset"})

#: Those that number the rows; the others are the versions that created or last changed a row.
ROW_NUMBERS: Final = frozenset({ROW_ID, ROW_ADDRESS})

SYSTEM_FIELDS: Final = {
    ROW_ID: pa.field(ROW_ID, pa.uint64(), nullable=False),
    ROW_ADDRESS: pa.field(ROW_ADDRESS, pa.uint64(), nullable=False),
    ROW_CREATED_AT: pa.field(ROW_CREATED_AT, pa.uint64(), nullable=False),
    ROW_LAST_UPDATED_AT: pa.field(ROW_LAST_UPDATED_AT, pa.uint64(), nullable=False),
}
