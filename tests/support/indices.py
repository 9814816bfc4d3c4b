"""What tests of indices share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.scan.scanner import Scanner

KINDS = ["btree", "bitmap", "zonemap", "bloomfilter"]

#: `by_pylance`: who begins; `stable`: whether row ids are stable. CI runs half of the combinations.
WHO_BEGINS = pytest.mark.parametrize(
    ("by_pylance", "stable"),
    [
        pytest.param(False, True, id="ours-stable"),
        pytest.param(True, False, id="theirs-addresses"),
        pytest.param(False, False, id="ours-addresses", marks=pytest.mark.slow),
        pytest.param(True, True, id="theirs-stable", marks=pytest.mark.slow),
    ],
)


def addresses(scan: Scanner) -> list[int]:
    """The addresses of the rows of a scan of that column."""
    found: list[int] = sorted(scan.to_table()["_rowaddr"].to_pylist())
    return found


def nullable(column: pa.Array, rng: np.random.Generator, share: float = 0.1) -> pa.Array:
    """The column with some nulls."""
    null: Any = pa.array(rng.random(len(column)) < share)
    return pc.if_else(null, pa.scalar(None, column.type), column)


def taking_turns(
    uri: str, rows: Callable[[int, int], pa.Table], changed: dict[str, str]
) -> dict[str, Callable[[], object]]:
    """The operations of both sides on an indexed table of 200 rows with a number ``id`` and a column ``x``.

    `rows` makes a count of rows from a first number on, `changed` sets the indexed column.
    """
    return {
        "build": lambda: None,
        "append": lambda: lance.write_dataset(rows(30, 200), uri, mode="append"),
        "delete": lambda: DatasetVersion.open(uri).delete("id BETWEEN 20 AND 30"),
        "update of another column": lambda: DatasetVersion.open(uri).update(
            {"x": "'b'"}, "id BETWEEN 40 AND 45"
        ),
        "update": lambda: DatasetVersion.open(uri).update(changed, "id BETWEEN 50 AND 55"),
        "compact": lambda: DatasetVersion.open(uri).compact(),
        "optimize": lambda: DatasetVersion.open(uri).optimize_indices(),
        "append again": lambda: lance.write_dataset(rows(30, 230), uri, mode="append"),
        "update by pylance": lambda: lance.dataset(uri).update({"x": "'c'"}, "id BETWEEN 60 AND 65"),
        "optimize by pylance": lambda: lance.dataset(uri).optimize.optimize_indices(),
        "compact by pylance": lambda: lance.dataset(uri).optimize.compact_files(),
        "optimize again": lambda: DatasetVersion.open(uri).optimize_indices(),
    }


def indices_serving(uri: str, filter: str) -> list[tuple[str, str]]:
    """Name and kind of the indices that serve a filter; the rows are those of scans, ours and pylance's."""
    ours = DatasetVersion.open(uri)
    scan = ours.scan(["id"], filter=filter)
    found = sorted(scan.to_table()["id"].to_pylist())
    assert found == sorted(ours.scan(["id"], filter=filter, indices=False).to_table()["id"].to_pylist())
    theirs = lance.dataset(uri).scanner(columns=["id"], filter=filter, use_scalar_index=False)
    assert found == sorted(theirs.to_table()["id"].to_pylist())
    metrics = scan.metrics
    assert metrics is not None
    return [(use.name, use.kind) for use in metrics.indices]
