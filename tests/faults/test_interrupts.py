"""Ctrl-C stops any operation: the checks of `interrupt_checks.py`, in a process that may be interrupted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).with_name("interrupt_checks.py")
#: A signal that meets a finalizer of Python is lost by Python itself, so a run may be repeated.
RUNS = 2


def run(names: str, seconds: float) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    for _ in range(RUNS):
        done = subprocess.run(
            [*command, str(CHECKS), "-k", names], capture_output=True, text=True, timeout=seconds, check=False
        )
        if done.returncode == 0:
            assert "passed" in done.stdout
            return
    pytest.fail(done.stdout + done.stderr)


@pytest.mark.slow  # a loaded machine takes longer than a test may
def test_some_interrupts() -> None:
    run("test_interrupts and (scan or filter or take or write)", 100)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_every_operation_and_a_thousand_interrupts() -> None:
    run("test", 700)
