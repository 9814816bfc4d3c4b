"""The pages about the engines match the conformance files, which the tests run."""

from __future__ import annotations

import conformance_page


def test_the_pages_are_up_to_date() -> None:
    """If this fails: ``python tests/support/conformance_page.py``."""
    text = conformance_page.PAGE.read_text()
    assert text == conformance_page.page(text)
    text = conformance_page.MIGRATING.read_text()
    assert text == conformance_page.migrating(text)
