"""Spark reads files outside of a dataset only if the user allows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lance_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.sampled(1)
@pytest.mark.parametrize("source", ["lance", "lance_python"])
def test_files_behind_a_link(spark: SparkSession, tmp_path: Path, source: str) -> None:
    place = tmp_path / "t.lance"
    lance_sql.write(pa.table({"a": [1, 2, 3]}), place)
    outside = (place / "data").rename(tmp_path / "outside")
    (place / "data").symlink_to(outside)
    with pytest.raises(Exception, match="allow_external"):
        spark.read.format(source).load(str(place)).collect()
    for allowed in ("all", f"{outside}/,/elsewhere/"):
        rows = spark.read.format(source).option("allow_external", allowed).load(str(place)).collect()
        assert sorted(row["a"] for row in rows) == [1, 2, 3]
