"""A sentence stands on one page; other pages link to it."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The first page of the site is that of the repository.
PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "index.md"] + [
    ROOT / "README.md"
]


def sentences(text: str) -> set[str]:
    """The sentences of at least eight words, outside of code and tables."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    paragraphs = re.split(r"\n\s*\n|\n(?=[-*|#\d])", text)
    plain = [" ".join(paragraph.split()) for paragraph in paragraphs if not paragraph.startswith("|")]
    found = (re.findall(r"\w+", part.lower()) for line in plain for part in re.split(r"(?<=[.:!?]) ", line))
    return {" ".join(words) for words in found if len(words) >= 8}


def test_no_sentence_stands_on_two_pages() -> None:
    pages = defaultdict(list)
    for path in PAGES:
        for sentence in sentences(path.read_text(encoding="utf-8")):
            pages[sentence].append(path.name)
    assert {sentence: names for sentence, names in pages.items() if len(names) > 1} == {}


def test_sentences_are_compared_without_their_line_breaks() -> None:
    one = "Zones in which no row can\nmatch are `never` read."
    other = "- Zones in which no row can match are never read. And more."
    assert len(sentences(one) & sentences(other)) == 1
