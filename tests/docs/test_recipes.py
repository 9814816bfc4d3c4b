"""Ibis, dbt, SQLMesh and SQLAlchemy with their real packages, as the page of integrations shows.

`make test-tools` installs each in a folder of its own, which precedes .venv in the import path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from documentation import code_blocks

import lance_sql

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"


TOOLS = Path(os.environ.get("LANCE_SQL_TOOLS", PAGE.parents[1] / "build" / "tools"))

pytestmark = pytest.mark.slow


def needs(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not (TOOLS / tool).exists(), reason=f"make test-tools installs {tool}")


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


def run(folder: Path, tool: str, program: str, *arguments: str) -> str:
    """What a Python file, or a program of the tool, prints."""
    path = os.pathsep.join([str(TOOLS / tool), str(Path(lance_sql.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path, "DBT_SEND_ANONYMOUS_USAGE_STATS": "False", "CI": "1"}
    script = program if program.endswith(".py") else str(TOOLS / tool / "bin" / program)
    done = subprocess.run(
        [sys.executable, script, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs("ibis")
def test_ibis(lake: Path) -> None:
    write_recipe("Ibis", lake)
    assert run(lake, "ibis", "totals.py").split() == ["books", "1250.0", "toys", "750.0"]


@needs("dbt")
def test_dbt(lake: Path) -> None:
    write_recipe("dbt", lake)
    run(lake, "dbt", "dbt", "run", "--profiles-dir", ".")
    totals = lance_sql.open(lake / "lake" / "totals.lance").to_table().to_pylist()
    assert sorted(map(tuple, (row.values() for row in totals))) == [("books", 1250.0), ("toys", 750.0)]


@needs("sqlmesh")
def test_sqlmesh(lake: Path) -> None:
    write_recipe("SQLMesh", lake)
    run(lake, "sqlmesh", "sqlmesh", "plan", "--auto-apply", "--no-prompts")
    assert "1250" in run(lake, "sqlmesh", "sqlmesh", "fetchdf", "SELECT * FROM shop.totals")


@needs("sqlalchemy")
def test_sqlalchemy(lake: Path) -> None:
    write_recipe("SQLAlchemy", lake)
    assert run(lake, "sqlalchemy", "report.py").split() == ["books", "1250.0", "toys", "750.0"]


def test_the_page_has_the_files() -> None:
    assert set(blocks("Ibis")) == {"totals.py"}
    assert set(blocks("dbt")) == {
        "profiles.yml",
        "dbt_project.yml",
        "models/sources.yml",
        "models/totals.sql",
    }
    assert set(blocks("SQLAlchemy")) == {"report.py"}
    assert set(blocks("SQLMesh")) == {"config.yaml", "models/sales.py", "models/totals.sql"}
