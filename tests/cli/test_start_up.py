"""What short commands import: no packages or modules of ours that are slow to import."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import lance_sql

SLOW = ("datafusion", "fsspec", "pandas", "polars", "prompt_toolkit", "pyarrow.dataset", "rich", "sqlglot")
#: what opens datasets
READING = ("google.protobuf", "lance_engine.dataset", "lance_engine.io.local", "lance_engine.table.snapshot")
#: what writes and changes datasets
WRITING = ("lance_engine.operations.merge_rows", "lance_engine.table.commit", "lance_engine.write.data_file")
#: what reads rows, and what filters them
SCANNING = ("lance_engine.scan.scanner",)
FILTERING = ("lance_engine.expr.evaluate", "lance_engine.index.search", "lance_engine.scan.prune")


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    uri = tmp_path_factory.mktemp("start") / "things.lance"
    lance_sql.write(pa.table({"id": range(1000), "label": ["x"] * 1000}), uri)
    return uri


def loaded(code: str, names: tuple[str, ...], *arguments: str) -> str:
    """Those of the modules `names` that a new interpreter has imported after `code`."""
    told = (
        f"import sys\ntry:\n    {code}\n"
        f"finally:\n    print([name for name in {names} if name in sys.modules], file=sys.stderr)"
    )
    found = subprocess.run(
        [sys.executable, "-c", told, *arguments], capture_output=True, text=True, check=True
    )
    return found.stderr.strip()


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["inspect", "{}", "--json"], ("duckdb", *WRITING, *SCANNING, *FILTERING)),
        (["history", "{}"], ("duckdb", *WRITING, *SCANNING, *FILTERING)),
        (["SELECT 1"], (*READING, *WRITING, *SCANNING, *FILTERING)),
        (["SELECT count(*) FROM '{}'"], (*WRITING, *FILTERING)),
        (["head", "{}"], ("duckdb", *WRITING, *FILTERING)),
        (["--help"], ("duckdb", *WRITING, *SCANNING, *FILTERING)),
    ],
    ids=["inspect", "history", "no dataset", "count", "head", "help"],
)
def test_short_commands_leave_slow_modules_out(things, arguments, absent):
    code = "from lance_sql.cli import main; sys.argv[0] = 'lance-sql'; main()"
    assert loaded(code, SLOW + absent, *(argument.format(things) for argument in arguments)) == "[]"


def test_importing_the_package_imports_no_library():
    assert loaded("import lance_sql", ("duckdb", "numpy", "pyarrow", "google.protobuf", *SLOW)) == "[]"


def test_opening_a_dataset_imports_nothing_that_reads_or_writes_rows(things):
    names = ("duckdb", "lance_engine.encodings.describe", *WRITING, *SCANNING, *FILTERING)
    assert (
        loaded(
            f"from lance_engine.dataset import DatasetVersion; DatasetVersion.open({str(things)!r})", names
        )
        == "[]"
    )
