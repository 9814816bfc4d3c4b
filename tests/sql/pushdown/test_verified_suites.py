"""TPC-H and ClickBench with all pushdowns, however small the tables are, against the same without any."""

from __future__ import annotations

from pathlib import Path

import pytest

import lance_sql
from benchmarks import clickbench
from demo.queries import query_text

SETTINGS = "SET lance_disabled_pushdowns = ''; SET lance_force_pushdowns = true; SET lance_verify = true"


@pytest.mark.sampled(1)
def test_tpch(tpch: Path, engine: str) -> None:
    with lance_sql.connect(tpch, engine=engine) as con:
        con.sql(SETTINGS)
        for number in range(1, 23):
            con.sql(query_text(number)).arrow()


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clickbench.prepared(tmp_path_factory.mktemp("hits"), 20_000)


def test_clickbench(hits: Path) -> None:
    with lance_sql.connect(hits) as con:
        con.sql(SETTINGS)
        for text in clickbench.queries():
            con.sql(text).arrow()
