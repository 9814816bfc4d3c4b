"""The page about the engines matches the conformance files, which the tests run."""

from __future__ import annotations

import conformance_page


def test_the_page_is_up_to_date() -> None:
    """If this fails: ``python tests/support/conformance_page.py``."""
    text = conformance_page.PAGE.read_text()
    assert text == conformance_page.page(text)
