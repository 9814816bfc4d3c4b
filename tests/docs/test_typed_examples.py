"""The Python of the README and the docs passes `mypy --strict`, as the program of a user would.

`make lint` checks it, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typed_examples import write

ROOT = Path(__file__).parents[2]
#: Not of concern here; some have no types.
LIBRARIES = (
    "botocore",
    "pyarrow",
    "duckdb",
    "datafusion",
    "pyspark",
    "polars",
    "pandas",
    "sqlglot",
    "IPython",
)
CONFIG = """[mypy]
strict = true
follow_imports = silent
# Examples use names again for other values, and show expressions without using them.
allow_redefinition = true
disable_error_code = no-redef
"""


def check(folder: Path, *programs: Path) -> str:
    """The output of mypy for the programs, or ""."""
    (folder / "mypy.ini").write_text(
        CONFIG
        + "".join(
            f"[mypy-{library}.*]\nignore_missing_imports = true\nfollow_imports = skip\n"
            for library in LIBRARIES
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), *map(str, programs)],
        cwd=folder,
        env={**os.environ, "MYPYPATH": f"{ROOT}{os.pathsep}{ROOT / 'engine'}"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return "" if done.returncode == 0 else done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("typed")


@pytest.mark.slow
def test_the_examples_are_typed(folder: Path) -> None:
    programs = write(folder / "page_examples")
    assert check(folder, *programs) == ""


@pytest.mark.slow
def test_a_wrong_option_is_found(folder: Path) -> None:
    program = folder / "wrong.py"
    program.write_text(
        "import lance_sql\n"
        "lance_sql.write({'a': [1]}, 'a.lance', max_row_per_file=10)\n"
        "lance_sql.write({'a': [1]}, 'a.lance', mode='apend')\n"
        "lance_sql.open('a.lance', version='1')\n"
        "reveal_type(lance_sql.write({'a': [1]}, 'a.lance').count_rows())\n"
    )
    found = check(folder, program)
    assert [line.split(":")[1] for line in found.splitlines() if "error:" in line] == ["2", "3", "4"]
    assert 'Revealed type is "builtins.int"' in found or 'Revealed type is "int"' in found
