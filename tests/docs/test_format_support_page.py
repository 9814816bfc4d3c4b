"""The page on format support is up to date."""

from __future__ import annotations

import re

import pytest
from format_support import PAGE, SECTIONS, page, table_of


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    """If this fails after a change for the better: ``python tests/support/format_support.py``."""
    assert PAGE.read_text() == page()


def test_nothing_is_wrong() -> None:
    assert "WRONG" not in PAGE.read_text()
    assert "pylance fails" not in PAGE.read_text()


@pytest.mark.parametrize("title", SECTIONS)
def test_a_line_of_each_section_is_up_to_date(title: str) -> None:
    cases = list(SECTIONS[title]())
    notes: list[str] = []
    line = table_of([case for case in cases if case.kind == cases[-1].kind], notes).splitlines()[-1]
    text = PAGE.read_text()
    assert without_notes(line) in without_notes(text).splitlines()
    assert [note for note in notes if note not in text] == []


def without_notes(text: str) -> str:
    """The text without the numbers of notes, which depend on the lines above."""
    return re.sub(r" \[\d+\]", "", text)
