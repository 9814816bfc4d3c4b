"""Every instruction set, forced as users do, against the reference: all kernels that have several."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from lance_engine import kernels

CHECK = """
import numpy as np
from lance_engine import kernels
from lance_engine.reference import bitpacking

rng = np.random.default_rng(1)
for bits in (8, 16, 32, 64):
    for width in range(1, bits + 1):
        top = (1 << width) - 1
        values = rng.integers(0, top, 2048, dtype=np.uint64, endpoint=True).astype(f"<u{bits // 8}")
        packed = [bitpacking.pack_block(values[at : at + 1024], width) for at in (0, 1024)]
        outer = kernels.block_out_of_line_bitpacking(bits, width)
        assert outer.decode(b"".join(packed), 2048) == values.tobytes(), (bits, width)
        inner = kernels.block_inline_bitpacking(bits)
        block = width.to_bytes(bits // 8, "little") + packed[1]
        assert inner.decode(block, 1000) == values[1024:2024].tobytes(), (bits, width)
print(kernels.simd_level())
"""


@pytest.mark.parametrize("level", kernels.simd_levels())
def test_a_forced_instruction_set(level: str) -> None:
    forced = os.environ | {"LANCE_SQL_SIMD": level, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        env=forced,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == level, done.stderr


def test_an_unknown_instruction_set_is_ignored() -> None:
    environment = os.environ | {"LANCE_SQL_SIMD": "abacus", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "from lance_engine import kernels; print(kernels.simd_level())"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == kernels.simd_levels()[-1], done.stderr
