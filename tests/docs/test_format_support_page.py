"""The page on format support is up to date."""

from __future__ import annotations

from format_support import PAGE, page


def test_the_page_is_up_to_date() -> None:
    """If this fails after a change for the better: ``python tests/support/format_support.py``."""
    assert PAGE.read_text() == page()
    assert "WRONG" not in PAGE.read_text()
    assert "pylance fails" not in PAGE.read_text()
