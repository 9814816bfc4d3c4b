"""What surrounds a release says the same as the project: the conda recipe, licences, notes, trials."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSIONS = (ROOT / "docs/versions.md").read_text()
#: The names of conda-forge, where they differ.
CONDA_NAMES = {"duckdb": "python-duckdb"}


def listed(section: str) -> set[str]:
    """The requirements of a section of the recipe, without blanks."""
    text = (PACKAGING / "conda" / "recipe.yaml").read_text()
    lines = re.search(rf"^  {section}:\n((?:    - .*\n)+)", text, re.MULTILINE)
    assert lines is not None
    return {line.removeprefix("    - ").replace(" ", "") for line in lines[1].splitlines()}


def in_conda(requirements: list[str]) -> set[str]:
    parts = [re.fullmatch(r"([\w-]+)(.*)", line) for line in requirements]
    return {CONDA_NAMES.get(part[1].lower(), part[1].lower()) + part[2] for part in parts if part}


def test_the_conda_recipe_needs_what_the_project_needs() -> None:
    assert listed("run") == in_conda(PROJECT["project"]["dependencies"]) | {"python>=3.11"}
    assert listed("host") | {"ninja"} == in_conda(PROJECT["build-system"]["requires"]) | {"python>=3.11"}
    version = PROJECT["project"]["version"]
    assert f'version: "{version}"' in (PACKAGING / "conda" / "recipe.yaml").read_text()


@pytest.mark.parametrize(
    ("package", "extra"), [("duckdb", None), ("datafusion", "datafusion"), ("pyspark", "spark")]
)
def test_the_versions_page_names_what_is_required(package: str, extra: str | None) -> None:
    project = PROJECT["project"]
    listed = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    bounds = next(line for line in listed if line.startswith(package))
    first, beyond = re.findall(r"[\d.]+", bounds)
    row = re.search(rf"^\| {package.removeprefix('py')} \| ([\d.]+) to ([\d.]+)", VERSIONS, re.M | re.I)
    assert row is not None
    assert row[1] == first
    bound = [int(part) for part in beyond.split(".")]
    *major, last = [int(part) for part in row[2].split(".")][: len(bound)]
    assert [*major, last + 1] == bound


def test_entry_points_name_classes() -> None:
    [(name, entry)] = PROJECT["project"]["entry-points"]["sqlalchemy.dialects"].items()
    module, _, member = entry.partition(":")
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    assert member in [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert name.replace(".", "+") in (ROOT / "docs/integrations.md").read_text()


def test_licences_name_the_versions_that_are_linked() -> None:
    text = (ROOT / "LICENSE-THIRD-PARTY").read_text()
    fetched = (ROOT / "engine/kernels/cmake/third_party.cmake").read_text()
    # The source distributions contain these versions of the libraries.
    assert re.findall(r"^  (?:zstandard|lz4) ([\d.]+) ", fetched, re.MULTILINE) == ["0.25.0", "4.4.4"]
    assert re.findall(r"^==== (?:Zstandard|LZ4) ([\d.]+)$", text, re.MULTILINE) == ["1.5.7", "1.9.4"]
    assert "LICENSE-THIRD-PARTY" in PROJECT["project"]["license-files"]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PACKAGING / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_release_notes_are_a_section_of_the_changelog() -> None:
    found = script("release_notes").notes(PROJECT["project"]["version"])
    assert len(found) > 100
    assert found in (ROOT / "CHANGELOG.md").read_text()
    assert "\n## [" not in found


TRIALS = sorted((PACKAGING / "first_hour").glob("[0-9]*"))


@pytest.mark.parametrize("trial", TRIALS, ids=lambda path: path.name)
def test_trials_can_be_read(trial: Path) -> None:
    text = trial.read_text()
    assert "# mistake" in text
    match trial.suffix:
        case ".py":
            ast.parse(text)
        case ".ipynb":
            assert all(cell["outputs"] == [] for cell in json.loads(text)["cells"])


def test_files_that_the_makefile_names_exist() -> None:
    named = set(re.findall(r"\b(?:tests|benchmarks|packaging)/[\w/]+\.\w+", (ROOT / "Makefile").read_text()))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
