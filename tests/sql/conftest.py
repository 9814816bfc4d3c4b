"""Fixtures of the SQL tests: a warehouse directory of small datasets, and tiny TPC-H data."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sql_tables
import sqlglot  # noqa: F401  # until it is loaded, small tables are read as they are

import lance_sql
from lance_sql.pushdown_settings import SETTINGS

TPCH_TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory) -> Path:
    """A directory with the tables of `sql_tables` as datasets; measurements has three fragments."""
    directory = tmp_path_factory.mktemp("warehouse")
    for name, make in sql_tables.ALL.items():
        lance_sql.write(make(), directory / f"{name}.lance", max_rows_per_file=5)
    write_stock(directory / "stock.lance")
    return directory


def write_stock(path: Path) -> None:
    """Three rows, one of them changed, and another added: three versions, the second tagged ``audited``."""
    dataset = lance_sql.write(pa.table({"item": ["nut", "bolt", "gear"], "pieces": [5, 7, 9]}), path)
    dataset = dataset.update({"pieces": "pieces + 100"}, where="item = 'bolt'")
    dataset.tags.create("audited")
    lance_sql.write(pa.table({"item": ["cog"], "pieces": [1]}), path, mode="append")


#: Tests of what pushdowns do, like those marked `pushdowns`; all others have to pass without any, and with
#: all of them forced: make test-pushdowns
ABOUT_PUSHDOWNS = {
    f"test_{name}.py"
    for name in (
        "bound_names", "case_requests", "dictionary_keys", "explain_statement", "first_rows", "join_keys",
        "limits", "metadata_answers", "plan_pictures", "plans_for_people", "pushdown", "pushdown_settings",
        "pushed_filters", "results", "scan_conditions", "small_statements", "verified_suites", "whole_table",
    )
}  # fmt: skip


@pytest.fixture(autouse=True)
def settings_that_tests_expect(request) -> None:
    about = request.path.name in ABOUT_PUSHDOWNS or request.node.get_closest_marker("pushdowns")
    if about and any(variable in os.environ for variable in SETTINGS.values()):
        pytest.skip("a test of what pushdowns do")


@pytest.fixture(params=["duckdb", "datafusion"])
def engine(request) -> str:
    return request.param


@pytest.fixture
def connection(warehouse, engine):
    with lance_sql.connect(warehouse, engine=engine) as connection:
        yield connection


@pytest.fixture(scope="session")
def tpch(tmp_path_factory) -> Path:
    """TPC-H at scale factor 0.01: NAME.parquet from the generator, and NAME.lance written from it."""
    directory = tmp_path_factory.mktemp("tpch")
    generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    arguments = ["parquet", "--scale-factor", "0.01", "--output-dir", str(directory)]
    subprocess.run([generator, *arguments], check=True, capture_output=True)
    for name in TPCH_TABLES:
        table = pq.read_table(directory / f"{name}.parquet")
        lance_sql.write(table, directory / f"{name}.lance", max_rows_per_file=25_000)
    return directory
