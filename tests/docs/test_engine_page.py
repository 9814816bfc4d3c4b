"""The pages about the engines match the conformance files, which the tests run."""

from __future__ import annotations

import conformance_page
import duckdb_types
import pytest


def test_the_pages_are_up_to_date() -> None:
    """If this fails: ``python tests/support/conformance_page.py``."""
    text = conformance_page.PAGE.read_text()
    assert text == conformance_page.page(text)
    text = conformance_page.MIGRATING.read_text()
    assert text == conformance_page.migrating(text)
    text = conformance_page.TYPES.read_text()
    assert text == conformance_page.types_page(text)


@pytest.mark.slow
def test_the_table_of_types_is_up_to_date() -> None:
    """If this fails: ``python tests/support/duckdb_types.py``."""
    text = duckdb_types.PAGE.read_text()
    assert text == duckdb_types.page(text)
