"""The documentation builds without warnings and has every page; its plots show benchmark results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lance_sql
from benchmarks.site_plots import PICTURE, RESULTS, about, on_page_markdown, picture

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site_is_built(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ
        | {"NO_MKDOCS_2_WARNING": "1", "LANCE_SQL_REPOSITORY": "https://example.com/lance-sql"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = {page.stem for page in tmp_path.glob("*.html")} - {"404"}
    assert pages == {page.stem for page in (ROOT / "docs").glob("*.md")} | {"api"}
    assert 'id="Dataset.scan"' in (tmp_path / "api.html").read_text()
    assert "<svg" in (tmp_path / "benchmarks.html").read_text()
    page = (tmp_path / "notebooks.html").read_text()
    assert "md-footer__link--prev" in page
    assert "md-footer__link--next" in page
    assert "https://example.com/lance-sql/edit/main/docs/notebooks.md" in page
    assert f"lance-sql {lance_sql.__version__}" in page
    searched = (tmp_path / "search" / "search_index.json").read_text().lower()
    for word in ("lancedb", "jupyter", "sqlalchemy", "image", "delta", "dataset.scan"):
        assert word in searched, word


def test_the_picture_of_the_readme_shows_the_figures() -> None:
    """``python benchmarks/site_plots.py`` makes it."""
    result = json.loads((RESULTS / "peers.json").read_text())
    assert PICTURE.read_text() == picture(result)
    assert about(result) in " ".join((ROOT / "README.md").read_text().split())


def test_plots_show_every_figure() -> None:
    page = on_page_markdown("before\n\n<!-- plots: peers -->\n\nafter")
    result = json.loads((RESULTS / "peers.json").read_text())
    assert page.startswith("before")
    assert page.endswith("after")
    assert page.count("<svg") == len(result["milliseconds"])
    for times in result["milliseconds"].values():
        assert min(times.values()) > 0
        for name in times:
            assert page.count(f">{name}</text>") == len(result["milliseconds"])
