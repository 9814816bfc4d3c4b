"""The page of the programming interface has every public name, with an address, a signature and a text."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys

import api_reference
import pytest

import lance_sql


@pytest.fixture(scope="module")
def page() -> str:
    return api_reference.page()


def test_every_public_name_is_on_it(page: str) -> None:
    for name in lance_sql.__all__:
        assert re.search(rf"^##+ (lance_sql\.)?{name}\b", page, re.MULTILINE), name


def test_every_name_has_a_docstring(page: str) -> None:
    entries = re.findall(r"^### .+? \{ #(.+) \}\n\n(?:```python\n[^`]+```\n\n)?(.*)$", page, re.MULTILINE)
    assert len(entries) > 200
    assert [address for address, text in entries if not text.strip() or text.startswith("#")] == []


def test_addresses_are_unique(page: str) -> None:
    addresses = re.findall(r"\{ #(.+) \}$", page, re.MULTILINE)
    assert len(addresses) == len(set(addresses))
    for address in ("open", "Dataset.scan", "Connection.sql", "spark.write", "CommitConflictError"):
        assert address in addresses


def test_signatures_are_code(page: str) -> None:
    signatures = re.findall(r"^```python\n([^`]+)```$", page, re.MULTILINE)
    assert len(signatures) > 100
    for signature in signatures:
        compile(f"def {signature.strip()}: ...".replace(" -> Any", ""), "api.md", "exec")
    assert max(len(line) for signature in signatures for line in signature.splitlines()) <= 120


def test_errors_that_docstrings_name_exist(page: str) -> None:
    named = set(re.findall(r"\b[A-Z]\w+Error\b", page))
    ours = set(re.findall(r"^### (\w+Error) ", page, re.MULTILINE))
    assert {name for name in named - ours if not hasattr(builtins, name)} == set()


def test_what_can_fail_says_how(page: str) -> None:
    """The functions that people call first name the errors that they raise."""
    for address in ("open", "write"):
        entry = page.split(f"{{ #{address} }}")[1].split("\n### ")[0]
        assert "Error" in entry, address


def test_the_script_writes_to_the_build_folder() -> None:
    """The page is not checked in, so nobody has to make it again."""
    done = subprocess.run(
        [sys.executable, api_reference.__file__], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip().endswith("build/api.md")
    assert not (api_reference.PAGE.parents[1] / "docs" / "api.md").exists()
