"""``python -m benchmarks.spark``: both formats hold the same rows, in one process and on a cluster."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow.parquet as pq
import pytest

KEY = [("l_orderkey", "ascending"), ("l_linenumber", "ascending")]


@pytest.mark.slow
@pytest.mark.timeout(900)  # starts Spark, and executors
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,2048]"])
def test_lineitem_is_the_same_in_both_formats(tmp_path: Path, master: str) -> None:
    command = [sys.executable, "-m", "benchmarks.spark", "--scale", "0.01", "--repetitions", "1"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path), "--master", master],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "checksums of all columns are equal" in done.stdout
    weighed = [int(mib) for mib in re.findall(r"(\d+) MiB", done.stdout)]
    assert len(weighed) == 2
    assert all(50 < mib < 1024 for mib in weighed)
    folder = tmp_path / "scale-0.01"
    stored = lance.dataset(folder / "spark" / "lineitem.lance").to_table()
    generated = pq.read_table(folder / "parquet" / "lineitem.parquet").cast(stored.schema)
    assert stored.sort_by(KEY).equals(generated.sort_by(KEY))
