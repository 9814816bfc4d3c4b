"""Streams that end while their threads work: no data race, and every array is released once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KERNELS = ROOT / "engine" / "kernels"
PROGRAM = ROOT / "tests" / "support" / "stream_races.cpp"
ROUNDS = 48


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("races") / "stream_races"
    sources = [PROGRAM, KERNELS / "stream" / "batch_stream.cpp", KERNELS / "stream" / "schema.cpp"]
    command = ["-std=c++20", "-O1", "-g", "-fsanitize=thread", "-pthread", f"-I{KERNELS}", *map(str, sources)]
    compiler = os.environ.get("CXX", "g++")
    try:
        subprocess.run([compiler, *command, "-o", str(built)], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"needs {compiler}")
    except subprocess.CalledProcessError as error:
        if "tsan" not in error.stderr:
            raise AssertionError(error.stderr) from None
        pytest.skip("needs a compiler with ThreadSanitizer")
    return built


@pytest.mark.slow
def test_streams_that_end_early(program: Path) -> None:
    done = subprocess.run([program, str(ROUNDS)], capture_output=True, text=True, timeout=240, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run with this system's address layout")
    assert "data race" not in done.stderr, done.stderr[:5000]
    assert done.returncode == 0, done.stderr[:5000]
    made, released = map(int, done.stdout.split())
    assert made == released > ROUNDS
