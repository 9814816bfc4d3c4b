"""Texts for people use plain words: the most common odd phrases occur nowhere.

It reads the README, the docs, all strings and comments of the packages, and the kernels' comments.
CONTRIBUTING lists what to write instead.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "SECURITY.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]
PACKAGES = ("lance_sql", "engine/lance_engine", "demo", "benchmarks")

#: Phrase -> what to write instead.
ODD = {
    r"there (?:is|are) none\b": "No indices. / does not exist",
    r"\bso that none\b": "so that no ... / so nothing",
    r"\bis no (?:command|append|longer to be)\b": "unknown command / is not an append",
    r"\bwish(?:es)? of\b|\bwishes\b": "hints, options",
    r"\bas it were\b": "(leave it out)",
    r"\band the like\b|\band their like\b": "and similar ...",
    r"\bforgets? (?:a |the )?(?:tag|branch|version|name)": "delete",
    r"\bmay not be had\b": "is not available",
    r"\bthereof\b|\bwherein\b|\bthereby\b|\bwhither\b|\bhence\b": "of it, in which, so",
    r"\bcan lie\b|\bmay lie\b|\blies in\b|\blie in\b|\blie at\b": "is stored in",
    r"\bleast value\b|\bgreatest value\b": "min, max",
    r"\btells? (?:how|what|which|whether|of|on)\b": "show, report, say",
    r"\bdo not hold\b|\bdoes not hold\b": "is not true / has no",
    r"\banew\b": "again",
    r"\b(?:is|are) told (?:of|in)\b": "reports, describes",
    r"\bof (?:its|their) own accord\b": "automatically",
    r"\b(?:that|which) (?:is|are) no (?!longer)": "that is not a ...",
    r"\bas ever\b": "as usual",
    r"\bwords of its own\b|\bplace of its own\b": "its own ...",
    r"\. Of (?:several|columns|each)\b": "If several ..., the ... of",
    r"\bbeside\b": "next to, in addition to",
    r"\bnowhere\b": "not in ..., unknown",
    r"\bthus\b|\bupon\b|\blet alone\b|\bfor want of\b": "so, on, not to mention, without",
    r"(?:^|\. )Nor\b": "It does not ... either.",
    r"\bof no use\b": "does not help, is not used",
    r"\bthat there (?:is|are) not\b": "that does not exist",
    r"\bbehind the (?:last|end|path)\b|\bmay stand\b": "after the last, you can write",
    r"\b(?:is|are) to be\b": "must be, will be",
    r"\bexists already\b": "already exists",
    r"\(s\)": "write singular and plural",
    r"\bunless told\b": "by default",
    r"\basks? of\b|\basked of\b": "reads from, requests from, needs from",
    r"\bmain history\b": "main branch",
    r"\bwhat (?:[\w.`]+ ){1,4}says? (?:of|about)\b": "the contents of, the metadata of",
    r"\bshall\b|\bgives? way\b|\bby now\b": "should, shrinks, already",
    r"\btold (?:apart|about)\b|\bknown of\b": "distinguished, notified, known about",
    r"\bwhere that is not known\b": "if unknown",
}


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """Places and texts that a person reads: lines of a page, strings of a module, comments of C++."""
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".md":
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield f"{name}:{number}", line
        return
    if path.suffix in (".cpp", ".hpp"):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield f"{name}:{number}", line.partition("//")[2]
        return
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield f"{name}:{node.lineno}", node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield f"{name}:{token.start[0]}", token.string.lstrip("#: ")


def offenders(path: Path) -> list[str]:
    return [
        f"{place}: {found[0]!r}, write: {instead}"
        for place, text in texts(path)
        for phrase, instead in ODD.items()
        if (found := re.search(phrase, text, re.IGNORECASE)) is not None
    ]


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_in_plain_words(page: str) -> None:
    assert offenders(ROOT / page) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_and_messages_are_in_plain_words(package: str) -> None:
    modules = [path for path in sorted((ROOT / package).rglob("*.py")) if "pb" not in path.parts]
    assert [found for path in modules for found in offenders(path)] == []


def test_comments_of_the_kernels_are_in_plain_words() -> None:
    sources = sorted((ROOT / "engine/kernels").rglob("*.[ch]pp"))
    assert sources
    assert [found for path in sources for found in offenders(path)] == []


def test_an_offender_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("Fine.\nForget a tag.\n")
    (tmp_path / "module.py").write_text('"""Tells how far it is."""\n# tells how\nX = "2 row(s)"\n')
    assert [found.partition(": '")[0] for found in offenders(tmp_path / "page.md")] == ["page.md:2"]
    (tmp_path / "kernel.cpp").write_text('const char* kText = "it tells how";\nint x;  // tells how\n')
    assert [found.partition(": '")[0] for found in offenders(tmp_path / "kernel.cpp")] == ["kernel.cpp:2"]
    found = offenders(tmp_path / "module.py")
    assert [line.partition(": '")[0] for line in found] == ["module.py:1", "module.py:3", "module.py:2"]
