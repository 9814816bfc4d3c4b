"""Statistics of damaged files may contain text that is not UTF-8."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from lance_engine.expr.from_sql import parse_sql
from lance_engine.expr.statistics import ColumnStatistics, match_zones


def test_bounds_that_are_no_text() -> None:
    bound = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 2, 4], np.int32).tobytes()), pa.py_buffer(b"a\x80zz")
    )
    statistics = ColumnStatistics.from_counts(np.array([5, 5]), bound, bound)
    schema = pa.schema([("t", pa.string())])
    for text, expected in (
        ("t IN ('a', 'zz')", [False, True]),
        ("t = 'zz'", [False, True]),
        ("t > 'b'", [False, True]),
    ):
        match = match_zones(parse_sql(text, schema), {("t",): statistics}, 2)
        assert match.may.tolist() == expected
