"""Every encoding has one module of the same form; the architecture page lists all that it needs."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
from lance_engine.encodings.v2_0 import table as table_2_0
from lance_engine.encodings.v2_1.table import TABLE

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "architecture.md"
IN_CHUNKS = [*TABLE.numbers, *TABLE.strings]


def test_an_encoding_takes_the_files_that_the_page_names() -> None:
    text = PAGE.read_text().partition("<!-- an encoding -->")[2].partition("\n\n")[0]
    named = re.findall(r"^\d+\. `([^`]+)`", text, re.MULTILINE)
    assert 0 < len(named) <= 8
    name = re.compile(r"byte_?stream_?split", re.IGNORECASE)
    sources = [path for top in ("engine", "lance_sql", "protos") for path in (ROOT / top).rglob("*.*")]
    knowing = {
        str(path.relative_to(ROOT))
        for path in sources
        if path.suffix in {".py", ".cpp", ".hpp", ".proto"} and not path.name.endswith("_pb2.py")
        if name.search(path.read_text())
    }
    assert knowing == set(named)


@pytest.mark.parametrize("module", IN_CHUNKS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_an_encoding_of_values_describes_and_estimates(module: ModuleType) -> None:
    assert module.__doc__
    assert callable(module.describe)
    assert callable(module.estimate)


def test_kinds_of_pages_and_arrays_have_one_shape() -> None:
    assert all(callable(kind.page) for kind in TABLE.pages)
    assert all(callable(each.encode) for each in table_2_0.TABLE)
