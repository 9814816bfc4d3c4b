"""What procedures return: one row, or rows of declared columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

#: One row of a result; Python types are converted to those of Spark.
Row = Mapping[str, int | str | bool | None]


class Listing(NamedTuple):
    """Any number of rows, with the types of Spark by the names of the columns."""

    columns: Mapping[str, str]
    rows: Sequence[Sequence[object]]
