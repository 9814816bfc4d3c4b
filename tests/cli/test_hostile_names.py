"""Names from somebody else, passed on by a shell, do not control the terminal."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_sql
from lance_sql.cli.app import app

HOSTILE = "x\x1b]0;title\x07\x9b31m\u202e"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["info", "t.lance", HOSTILE], 2),
        (["head", "t.lance", f"--{HOSTILE}"], 2),
        (["shell", ".", HOSTILE], 2),
        (["shell", f"{HOSTILE}/below"], 1),  # no such directory
    ],
)
def test_mistakes_in_arguments(words: list[str], code: int) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(result.output)
    assert "\\x1b" in result.output


def test_names_of_damaged_tags(tmp_path: Path) -> None:
    dataset = lance_sql.write(pa.table({"a": [1]}), tmp_path / "t.lance")
    dataset.tags.create("good")
    (tmp_path / "t.lance" / "_refs" / "tags" / f"{HOSTILE}.json").write_text("{")
    result = CliRunner().invoke(app, ["cleanup", str(tmp_path / "t.lance")])
    assert "every version is kept" in result.output
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(result.output)
