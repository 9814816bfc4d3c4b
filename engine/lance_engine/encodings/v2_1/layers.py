"""The layers of a page: the contents of each step from the leaf to the column (format 2.1, layers)."""

from __future__ import annotations

from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.kernels import Levels

LEVEL_BITS = 16


def layers_of(levels: Levels) -> list[str]:
    """The layers of levels as messages of layouts name them, leaf first."""
    return [pb.RepDefLayer.Name(layer) for layer in levels.layers]
