"""What short commands import: packages that are slow to import stay out."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import lance_sql

SLOW = ("datafusion", "fsspec", "pandas", "pyarrow.dataset", "rich", "sqlglot", "typer")


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    uri = tmp_path_factory.mktemp("start") / "things.lance"
    lance_sql.write(pa.table({"id": range(1000), "label": ["x"] * 1000}), uri)
    return uri


@pytest.mark.parametrize(
    ("arguments", "also"),
    [
        (["inspect", "{}", "--json"], ("duckdb", "prompt_toolkit")),
        (["SELECT count(*) FROM '{}'"], ("prompt_toolkit",)),
        (["head", "{}"], ("duckdb",)),
        (["--help"], ("duckdb",)),
    ],
    ids=["inspect", "count", "head", "help"],
)
def test_short_commands_leave_slow_packages_out(things, arguments, also):
    code = (
        "import sys\n"
        "sys.argv = ['lance-sql', *sys.argv[1:]]\n"
        "from lance_sql.cli import main\n"
        "try:\n    main()\n"
        f"finally:\n    print([name for name in {SLOW + also} if name in sys.modules], file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, *(argument.format(things) for argument in arguments)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stderr == "[]\n"
    assert found.stdout
