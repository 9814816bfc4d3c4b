"""The version that manifests are signed with is that of the distribution."""

from __future__ import annotations

import tomllib
from pathlib import Path

import lance_engine


def test_the_engine_has_the_version_of_the_distribution() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == lance_engine.__version__
