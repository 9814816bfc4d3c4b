"""Fixtures for tests of several kinds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run, in which ``format("lance")`` is registered."""
    import lance_sql.spark

    problem = lance_sql.spark.java_problem()
    if problem is not None:
        pytest.skip(problem)
    with warnings.catch_warnings():
        # Starting the JVM forks, of which the official implementation warns; Spark warns of pandas 3.
        warnings.simplefilter("ignore")
        session = lance_sql.spark.local_session(memory="2g")
    yield session
    session.stop()
