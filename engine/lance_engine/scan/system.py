"""Columns that every dataset has without storing them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

ROW_ID: Final = "_rowid"
ROW_ADDRESS: Final = "_rowaddr"

SYSTEM_FIELDS: Final = {
    ROW_ID: pa.field(ROW_ID, pa.uint64(), nullable=False),
    ROW_ADDRESS: pa.field(ROW_ADDRESS, pa.uint64(), nullable=False),
}
