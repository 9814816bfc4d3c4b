"""What importing the Spark package costs: Python workers import it often."""

from __future__ import annotations

import subprocess
import sys

WORKER = """
import sys
import pyspark_lance_sql
unneeded = {"datafusion", "duckdb", "sqlglot", "lance_sql.spark.maintenance"}
assert not unneeded & sys.modules.keys(), unneeded & sys.modules.keys()
"""
WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
import lance_sql.spark
assert not hasattr(lance_sql.spark, "nothing")
try:
    lance_sql.spark.table
except ModuleNotFoundError as error:
    assert error.name.startswith("pyspark") and "pip install 'lance-sql[spark]'" in str(error), error
else:
    raise AssertionError("there is no pyspark")
"""


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_workers_import_no_engine() -> None:
    run(WORKER)


def test_without_spark_the_error_says_what_to_install() -> None:
    run(WITHOUT_SPARK)
