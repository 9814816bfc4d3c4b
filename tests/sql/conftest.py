"""Fixtures of the SQL tests: a warehouse directory of small datasets, and tiny TPC-H data."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sql_tables

import lance_sql

TPCH_TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory) -> Path:
    """A directory with the tables of `sql_tables` as datasets; measurements lies in three fragments."""
    directory = tmp_path_factory.mktemp("warehouse")
    for name, make in sql_tables.ALL.items():
        lance_sql.write(make(), directory / f"{name}.lance", max_rows_per_file=5)
    return directory


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
