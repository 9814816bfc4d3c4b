"""Every instruction set, forced as users do, against the reference: all kernels that have several."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lance_engine import kernels

SUPPORT = Path(__file__).parents[2] / "support"
DECODE = Path(__file__).parents[3] / "engine" / "kernels" / "decode"
CHECK = "import kernel_checks; kernel_checks.check_all(); print(kernel_checks.kernels.simd_level())"
LEVEL = "from lance_engine import kernels; print(kernels.simd_level())"


def run(level: str, code: str) -> subprocess.CompletedProcess[str]:
    places = os.pathsep.join([*sys.path, str(SUPPORT)])
    environment = os.environ | {"LANCE_SQL_SIMD": level, "PYTHONPATH": places}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", kernels.simd_levels())
def test_a_forced_instruction_set(level: str) -> None:
    done = run(level, CHECK)
    assert done.stdout.strip() == level, done.stderr


def test_an_unknown_instruction_set_is_ignored() -> None:
    done = run("abacus", LEVEL)
    assert done.stdout.strip() == kernels.simd_levels()[-1], done.stderr


def test_no_kernel_with_several_levels_is_left_out() -> None:
    """A kernel that comes in several levels needs a check in tests/support/kernel_checks.py."""
    assert {path.name for path in DECODE.rglob("*_avx2.cpp")} == {"unpack_avx2.cpp", "range_test_avx2.cpp"}
