"""Ibis, dbt and SQLMesh with their real packages, if installed, as the page of integrations shows."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from documentation import code_blocks

import lance_sql

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"{' and '.join(missing)} is not a development dependency"
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    table = pa.table({"id": range(1_000), "category": ["toys", "books"] * 500, "price": [1.5, 2.5] * 500})
    lance_sql.write(table, tmp_path / "lake" / "sales.lance")
    return tmp_path


def blocks(tool: str) -> dict[str, str]:
    """The files of a recipe: the first line of each block is a comment with the name."""
    section = PAGE.read_text().split(f"\n## {tool}\n")[1].split("\n## ")[0]
    found = {}
    for block in code_blocks(PAGE):
        first, _, rest = block.code.partition("\n")
        if block.code in section and first.startswith(("# ", "-- ")) and "." in first.split()[1]:
            found[first.split()[1]] = rest
    return found


def write_recipe(tool: str, folder: Path) -> None:
    for name, text in blocks(tool).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")


def run(folder: Path, program: str, *arguments: str) -> str:
    root = str(Path(lance_sql.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "DBT_SEND_ANONYMOUS_USAGE_STATS": "False", "CI": "1"}
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs("ibis", "duckdb")
def test_ibis(lake: Path) -> None:
    write_recipe("Ibis", lake)
    assert run(lake, "python", "totals.py").split() == ["books", "1250.0", "toys", "750.0"]


@needs("dbt.adapters.duckdb") if importlib.util.find_spec("dbt") else needs("dbt")
def test_dbt(lake: Path) -> None:
    write_recipe("dbt", lake)
    run(lake, "dbt", "run", "--profiles-dir", ".")
    totals = lance_sql.open(lake / "lake" / "totals.lance").to_table().to_pylist()
    assert sorted(map(tuple, (row.values() for row in totals))) == [("books", 1250.0), ("toys", 750.0)]


@needs("sqlmesh")
def test_sqlmesh(lake: Path) -> None:
    write_recipe("SQLMesh", lake)
    run(lake, "sqlmesh", "plan", "--auto-apply", "--no-prompts")
    assert "1250" in run(lake, "sqlmesh", "fetchdf", "SELECT * FROM shop.totals")


def test_the_page_has_the_files() -> None:
    assert set(blocks("Ibis")) == {"totals.py"}
    assert set(blocks("dbt")) == {
        "profiles.yml",
        "dbt_project.yml",
        "models/sources.yml",
        "models/totals.sql",
    }
    assert set(blocks("SQLMesh")) == {"config.yaml", "models/sales.py", "models/totals.sql"}
