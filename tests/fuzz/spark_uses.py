"""Spark's uses of damaged datasets, in one session: rows as our own scan has them, or a clear error."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import lance_engine.errors
from lance_engine.errors import LanceError
from whole_datasets import shown_rows

import lance_sql

#: Errors of ours, by the names that Spark's messages contain.
_ERRORS = tuple(name for name in vars(lance_engine.errors) if name.endswith("Error"))


@cache
def session() -> Any:
    """The session of this process; its JVM has no part in limits that are set later."""
    from lance_sql.spark import local_session

    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    warnings.simplefilter("ignore")
    spark = local_session(memory="1g", cores=1)
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return spark


def _clear(run: Callable[[], Any]) -> Any:
    """What it returns; a LanceError for an error of Spark that carries one of ours."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return run()
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        # A column that only other datasets have, or that the change removed, is refused by Spark itself.
        if "[UNRESOLVED_COLUMN" in text or any(name in text for name in _ERRORS):
            raise LanceError(text) from None
        raise


def _same_rows(uri: str, filter: str | None = None) -> None:
    names: list[str] = []
    expected: list[str] | LanceError
    try:
        dataset = lance_sql.open(uri)
        names = [name for name in dataset.schema.names if name in ("a", "s", "f", "l", "r")]
        expected = shown_rows(dataset.scan(names, filter).to_table())
    except LanceError as error:
        expected = error
    frame = _clear(lambda: session().read.format("lance").load(uri))
    if filter is not None:
        frame = _clear(lambda: frame.filter(filter))
    found = shown_rows(_clear(lambda: frame.select(*names).toArrow()))
    assert not isinstance(expected, LanceError), f"{len(found)} rows; our scan: {expected}"
    assert found == expected, f"{len(found)} rows of {len(expected)}, or others"


def reads(uri: str) -> dict[str, Callable[[], object]]:
    spark, table = session(), f"lance.`{uri}`"

    def sql(text: str) -> Callable[[], object]:
        return lambda: _clear(lambda: spark.sql(text.replace("{t}", table)).toArrow())

    return {
        "rows": lambda: _same_rows(uri),
        "filtered": lambda: _same_rows(uri, "a > 10 AND a < 90"),
        "filtered by text": lambda: _same_rows(uri, "s = 'text 3'"),
        "count": sql("SELECT count(*), min(a), max(s) FROM {t}"),
        "old": sql("SELECT * FROM {t} VERSION AS OF 1 LIMIT 5"),
        "described": sql("DESCRIBE TABLE EXTENDED {t}"),
    }


def writes(uri: str) -> dict[str, Callable[[], object]]:
    spark, table = session(), f"lance.`{uri}`"

    def append() -> object:
        frame = spark.read.format("lance").load(uri).limit(3)
        return frame.write.format("lance").mode("append").save(uri)

    return {
        "append": lambda: _clear(append),
        "delete": lambda: _clear(lambda: spark.sql(f"DELETE FROM {table} WHERE a = 3").collect()),
        "update": lambda: _clear(lambda: spark.sql(f"UPDATE {table} SET f = 0 WHERE a < 9").collect()),
    }
