"""The page on errors shows the messages that Spark's users get."""

from __future__ import annotations

import mistakes
import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> list[mistakes.Mistake]:
    return list(mistakes.mistakes_in_spark(spark))


def test_the_table_is_up_to_date(made: list[mistakes.Mistake]) -> None:
    """If this fails: ``python tests/support/mistakes.py``."""
    text = mistakes.PAGE.read_text()
    assert text == mistakes.page_for_spark(text, made)


def test_every_mistake_is_an_error_of_ours(made: list[mistakes.Mistake]) -> None:
    assert len(made) == len(mistakes.SPARK)
    for mistake in made:
        assert "." not in mistake.kind, mistake  # a class that is not ours has its module
        assert mistake.kind != "nothing", mistake
        assert mistake.message, mistake
        assert "Traceback" not in mistake.message
