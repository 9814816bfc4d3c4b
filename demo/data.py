"""TPC-H data: generated as Parquet, written as Lance by Spark, or without Java by lance-sql itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

import lance_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

# Writes one Parquet file as one Lance dataset.
WriteTable = Callable[[Path, Path], None]


def generate(folder: Path, scale: float) -> None:
    """One Parquet file per table in `folder`; kept if an earlier run finished it."""
    done = folder / f".complete-{scale}"
    if done.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [str(Path(sys.executable).with_name("tpchgen-cli")), "parquet"]
    command += ["--scale-factor", str(scale), "--output-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    done.touch()


def spark_writer(spark: SparkSession) -> WriteTable:
    """Spark reads the Parquet file and writes the dataset."""

    def write(source: Path, target: Path) -> None:
        frame = spark.read.parquet(str(source))
        frame.write.format("lance").mode("overwrite").save(str(target))

    return write


def own_writer(source: Path, target: Path) -> None:
    """The same without Spark: `lance_sql.write` takes the batches of the Parquet file."""
    lance_sql.write(pq.read_table(source), target, mode="overwrite")


@contextmanager
def spark_session(log: Path) -> Iterator[SparkSession]:
    """A local session; the output of Spark and the JVM goes to the file `log`."""
    from lance_sql.spark import local_session

    saved = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)  # the JVM inherits it
    try:
        session = local_session(memory="2g")
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    try:
        yield session
    finally:
        session.stop()


def size(path: Path) -> int:
    """Bytes of a file or of everything in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
