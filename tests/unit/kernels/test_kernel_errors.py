"""Errors of the kernels keep their kinds when other native modules are loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

OURS, THEIRS = "from lance_engine import kernels", "import duckdb"
# More memory than there are addresses.
TOO_MUCH = "kernels.Nearest(1 << 55, 1, 0.0, 1.0)"


@pytest.mark.parametrize("imports", [f"{OURS}; {THEIRS}", f"{THEIRS}; {OURS}"])
def test_missing_memory_is_told_in_pythons_words(imports: str) -> None:
    """DuckDB is a nanobind module too, and translates what it catches into errors of its own."""
    program = f"{imports}\ntry: {TOO_MUCH}\nexcept Exception as error: print(type(error).__mro__[0])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "<class 'MemoryError'>"


def test_errors_of_duckdb_are_its_own() -> None:
    import duckdb

    with pytest.raises(duckdb.ParserException):
        duckdb.sql("SELEKT 1")


def test_nothing_is_said_of_what_caches_hold_at_the_end() -> None:
    program = f"{OURS}\nimport ctypes\nsource = kernels.MappedSource.open({__file__!r})\n"
    program += "ctypes.pythonapi.Py_IncRef(ctypes.py_object(source))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
