"""All ids of a serialised sequence of row ids."""

from __future__ import annotations

from typing import Any

import numpy as np
from lance_engine.format.row_ids import parse_row_ids, row_ids_at


def decode_row_ids(data: bytes, physical_rows: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The id of each physical row."""
    return row_ids_at(parse_row_ids(data, physical_rows), np.arange(physical_rows))
