"""Every statement either does what it says or is refused; the page shows which."""

from __future__ import annotations

from pathlib import Path

import pytest
import statement_table
from pyspark.sql import SparkSession


@pytest.mark.sampled(25)
@pytest.mark.parametrize("case", statement_table.STATEMENTS, ids=lambda case: str(case[0]))
def test_a_statement_is_as_the_table_says(
    tmp_path: Path, case: tuple[str, str, list[tuple[object, ...]]]
) -> None:
    refusal = statement_table.outcome(*case, tmp_path)
    _, _, made = statement_table.PAGE.read_text().partition(statement_table.BEGIN)
    begin = f"| {statement_table.cell(f'`{case[0]}`')} | "
    lines = [line for line in made.partition(statement_table.END)[0].splitlines() if line.startswith(begin)]
    assert lines == ([f"{begin}{statement_table.cell(refusal)} |"] if refusal else [])


@pytest.mark.slow
def test_the_table_is_up_to_date() -> None:
    """If this fails: ``python tests/support/statement_table.py``."""
    text = statement_table.PAGE.read_text()
    assert text == statement_table.page(text)


@pytest.mark.slow
def test_the_table_of_other_engines_is_up_to_date() -> None:
    """If this fails: ``python tests/support/statement_table.py``."""
    text = statement_table.PAGE.read_text()
    assert text == statement_table.engines_page(text, statement_table.spark_rows(text))


@pytest.mark.slow
def test_spark_runs_what_the_table_does_not_list(spark: SparkSession) -> None:
    listed = "\n".join(statement_table.spark_rows(statement_table.PAGE.read_text())).replace("\\|", "|")
    refused = statement_table.refusals(statement_table.spark_catalog(spark))
    assert [text for texts in refused.values() for text in texts if f"`{text}`" not in listed] == []
