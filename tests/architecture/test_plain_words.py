"""Texts for people use plain words: the most common odd phrases occur nowhere.

It reads the README, the docs, all strings and comments of the packages, the kernels and the planner, and the
docstrings and comments of the tests. CONTRIBUTING lists what to write instead.
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
    r"\bthere (?:is|are) none\b": "No indices. / does not exist",
    r"\bso that none\b": "so that no ... / so nothing",
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
    r"\b(?<!there )(?:is|are|was|were) no (?!longer|more|less|fewer|larger|higher)": "is not a ...",
    r"\bas ever\b": "as usual",
    r"\bwords of its own\b|\bplace of its own\b": "its own ...",
    r"\. Of (?:several|columns|each)\b": "If several ..., the ... of",
    r"\bbeside\b": "next to, in addition to",
    r"\bnowhere\b": "not in ..., unknown",
    r"\bthus\b|\bupon\b|\blet alone\b|\bfor want of\b": "so, on, not to mention, without",
    r"(?:^|\. )Nor\b": "It does not ... either.",
    r"\bof no use\b": "does not help, is not used",
    r"\bof late\b|\blest\b|\bsave for\b|\bwhereby\b|\bso as to\b|\bas yet\b": "recently, so that ... not",
    r"\bthat there (?:is|are) not\b": "that does not exist",
    r"\bbehind the (?:last|end|path)\b|\bmay stand\b": "after the last, you can write",
    r"\b(?:is|are) to be\b": "must be, will be",
    r"\bexists already\b": "already exists",
    # Time32(s) and Timestamp(s) are types of DataFusion.
    r"(?<=[a-z])(?<!timestamp)\(s\)": "write singular and plural",
    r"\bunless told\b": "by default",
    r"\basks? of\b|\basked of\b": "reads from, requests from, needs from",
    r"\bmain history\b": "main branch",
    r"\bwhat (?:[\w.`]+ ){1,4}says? (?:of|about)\b": "the contents of, the metadata of",
    r"\bshall\b|\bgives? way\b|\bby now\b": "should, shrinks, already",
    r"\btold (?:apart|about)\b|\bknown of\b": "distinguished, notified, known about",
    r"\bwhere that is not known\b": "if unknown",
}

#: One expression is much faster where nothing is found: it only looks at the beginnings of words.
_ANY = re.compile(
    "|".join(
        [
            r"\b(?:"
            + "|".join(re.sub(r"(^|\|)\\b", r"\1", phrase) for phrase in ODD if phrase.startswith(r"\b"))
            + ")",
            *(phrase.lower() for phrase in ODD if not phrase.startswith(r"\b")),
        ]
    )
)


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """Places and texts that people read: lines, or strings (of tests, docstrings) and comments of Python."""
    name = path.relative_to(ROOT).as_posix()
    source = path.read_text()
    if path.suffix != ".py":
        for number, line in enumerate(source.splitlines(), start=1):
            if path.suffix == ".test" and not line.startswith("--"):
                continue
            yield f"{name}:{number}", line
        return
    tree = ast.parse(source)
    if name.startswith("tests/"):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)) is not None:
                yield f"{name}:{node.body[0].lineno}", text
    else:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{name}:{node.lineno}", node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield f"{name}:{token.start[0]}", token.string.lstrip("#: ")


def offenders(path: Path) -> list[str]:
    # Strings may continue on the next line.
    if _ANY.search(re.sub(r"""["']\s*\n\s*f?["']""", "", path.read_text()).lower()) is None:
        return []
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


@pytest.mark.parametrize(
    ("folder", "files"), [("engine/kernels", "*.[ch]pp"), ("spark", "*.java"), ("queries", "*.test")]
)
def test_other_sources_are_in_plain_words(folder: str, files: str) -> None:
    sources = sorted((ROOT / folder).rglob(files))
    assert sources
    assert [found for path in sources for found in offenders(path)] == []


def test_tests_are_in_plain_words() -> None:
    modules = sorted(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
    assert [found for path in modules for found in offenders(path)] == []


def test_an_offender_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("Fine.\nForget a tag.\n")
    (tmp_path / "module.py").write_text('"""Tells how far it is."""\n# tells how\nX = "2 row(s)"\n')
    assert [found.partition(": '")[0] for found in offenders(tmp_path / "page.md")] == ["page.md:2"]
    (tmp_path / "kernel.cpp").write_text('const char* kText = "it tells how";\nint x;  // tells how\n')
    assert [found.partition(": '")[0] for found in offenders(tmp_path / "kernel.cpp")] == [
        "kernel.cpp:1",
        "kernel.cpp:2",
    ]
    found = offenders(tmp_path / "module.py")
    assert [line.partition(": '")[0] for line in found] == ["module.py:1", "module.py:3", "module.py:2"]
