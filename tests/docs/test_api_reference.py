"""The API page matches the source and includes every public name."""

from __future__ import annotations

import re

import api_reference

import lance_sql


def test_the_page_is_up_to_date() -> None:
    """If this fails: ``python tests/support/api_reference.py``."""
    assert api_reference.PAGE.read_text() == api_reference.page()


def test_every_public_name_is_on_it() -> None:
    found = api_reference.page()
    for name in lance_sql.__all__:
        assert re.search(rf"^##+ `?(lance_sql\.)?{name}\b", found, re.MULTILINE), name


def test_everything_on_it_says_something() -> None:
    headings = re.findall(r"^### (.+)\n\n(.*)$", api_reference.page(), re.MULTILINE)
    assert len(headings) > 100
    assert [heading for heading, text in headings if not text.strip()] == []
