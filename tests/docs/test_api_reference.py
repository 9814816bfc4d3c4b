"""The page of the programming interface has every public name, with an address, a signature and a text."""

from __future__ import annotations

import builtins
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import api_reference
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidArgumentError
from lance_engine.progress import ProgressEvent

import lance_sql

COMMON = api_reference.COMMON
MEMBERS = list(api_reference.members())
#: Those that do not take any options.
FUNCTIONS = [
    (address, member)
    for address, member in MEMBERS
    if not inspect.isclass(member)
    and inspect.Parameter.VAR_KEYWORD not in {p.kind for p in inspect.signature(member).parameters.values()}
]


@pytest.fixture(scope="module")
def page() -> str:
    return api_reference.page()


def test_every_public_name_is_on_it(page: str) -> None:
    for name in lance_sql.__all__:
        assert re.search(rf"^##+ (lance_sql\.)?{name}\b", page, re.MULTILINE), name


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """One object of each public class."""
    dataset = lance_sql.write(pa.table({"a": [1]}), tmp_path_factory.mktemp("api") / "t.lance")
    scanner = dataset.scan()
    scanner.to_table()
    event = ProgressEvent("reading", 0, None, 0, 0, 0.0)
    with lance_sql.connect() as connection:
        yield {
            "Dataset": dataset,
            "Scanner": scanner,
            "ScanMetrics": scanner.metrics,
            "MergeBuilder": dataset.merge(pa.table({"a": [1]}), on="a"),
            "Inspector": dataset.inspect,
            "Tags": dataset.tags,
            "Branches": dataset.branches,
            "Connection": connection,
            "QueryResult": connection.sql("SELECT 1"),
            "Explanation": connection.explain("SELECT 1"),
            "ProgressEvent": event,
        }


def test_members_that_people_see_are_on_it(page: str, objects: dict[str, Any]) -> None:
    """A member is on the page, or another one explains it in the text of its class; no others are shown."""
    assert set(objects) == set(re.findall(r"^## (\w+) \{ #", page, re.MULTILINE)) - {
        "Functions",
        "Errors",
        "Parameters",
    }
    for name, member in objects.items():
        section = page.split(f"## {name} {{ #{name} }}")[1].split("\n## ")[0]
        text = section.split("\n### ")[0]
        documented = set(re.findall(rf"^### \S+ \{{ #{name}\.(\w+) \}}", section, re.MULTILINE))
        shown = {attribute for attribute in dir(member) if not attribute.startswith("_")}
        explained = {attribute for attribute in shown if f"`{attribute}`" in text}
        assert shown == documented | explained, name


def test_packages_show_public_names_only() -> None:
    assert dir(lance_sql) == sorted(lance_sql.__all__)
    for name in api_reference.MODULES:
        module = getattr(lance_sql, name)
        named = module._NAMED if name == "dbapi" else ()
        assert dir(module) == sorted([*module.__all__, *named])
        assert [name for name in named if not hasattr(module, name)] == []


def test_private_names_are_not_shown(objects: dict[str, Any]) -> None:
    for name, member in objects.items():
        assert [shown for shown in dir(member) if re.match("_[^_]", shown)] == [], name


def test_every_name_has_a_docstring(page: str) -> None:
    entries = re.findall(r"^### .+? \{ #(.+) \}\n\n(?:```python\n[^`]+```\n\n)?(.*)$", page, re.MULTILINE)
    assert len(entries) > 180
    assert [address for address, text in entries if not text.strip() or text.startswith("#")] == []


@pytest.mark.parametrize(("address", "member"), [pytest.param(*pair, id=pair[0]) for pair in MEMBERS])
def test_every_parameter_is_explained(address: str, member: Any) -> None:
    """In the docstring, or in the table of parameters that mean the same everywhere."""
    assert set(api_reference.parameters(member)) - api_reference.explained(member) - set(COMMON) == set()


@pytest.mark.parametrize(("address", "member"), [pytest.param(*pair, id=pair[0]) for pair in FUNCTIONS])
def test_a_misspelt_option_is_answered_with_its_name(address: str, member: Any) -> None:
    options = [name for name in api_reference.parameters(member) if len(name) > 3]
    for option in options:
        with pytest.raises(InvalidArgumentError, match=rf"Unknown option .* mean '{option}'"):
            member(**{option[:1] + option[2:]: None})


def test_parameters_that_mean_the_same_everywhere_are_used() -> None:
    used = {name for _, member in MEMBERS for name in api_reference.parameters(member)}
    assert set(COMMON) <= used


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
