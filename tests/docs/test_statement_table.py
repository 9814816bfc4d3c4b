"""Every statement either does what it says or is refused; the page shows which."""

from __future__ import annotations

import pytest
import statement_table
from pyspark.sql import SparkSession


def test_the_table_is_up_to_date() -> None:
    """If this fails: ``python tests/support/statement_table.py``."""
    text = statement_table.PAGE.read_text()
    assert text == statement_table.page(text)


@pytest.mark.slow
def test_the_table_of_other_engines_is_up_to_date() -> None:
    """If this fails: ``python tests/support/statement_table.py``."""
    text = statement_table.ENGINES_PAGE.read_text()
    assert text == statement_table.engines_page(text, statement_table.spark_rows(text))


@pytest.mark.slow
def test_spark_runs_what_the_table_does_not_list(spark: SparkSession) -> None:
    listed = "\n".join(statement_table.spark_rows(statement_table.ENGINES_PAGE.read_text())).replace(
        "\\|", "|"
    )
    refused = statement_table.refusals(statement_table.spark_catalog(spark))
    assert [text for texts in refused.values() for text in texts if f"`{text}`" not in listed] == []
