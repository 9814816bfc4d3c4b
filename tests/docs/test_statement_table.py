"""Every statement either does what it says or is refused; the page shows which."""

from __future__ import annotations

import statement_table


def test_the_table_is_up_to_date() -> None:
    """If this fails: ``python tests/support/statement_table.py``."""
    text = statement_table.PAGE.read_text()
    assert text == statement_table.page(text)
