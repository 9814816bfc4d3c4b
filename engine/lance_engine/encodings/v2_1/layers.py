"""The layers of a page: what a step from the leaf to the top-level column may hold (format 2.1, layers)."""

from __future__ import annotations

from typing import Any

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.pb import encodings21_pb2

_KNOWN = frozenset(encodings21_pb2.RepDefLayer.values()) - {encodings21_pb2.REPDEF_UNSPECIFIED}


def layers_of(message: Any) -> bytes:
    """One byte per layer of a layout message, leaf first; UnsupportedFeatureError names an unknown one."""
    for layer in message.layers:
        if layer not in _KNOWN:
            raise UnsupportedFeatureError(
                f"A page declares a layer of the unknown kind {layer}",
                remedy="Read the file with a newer release, or leave the column out",
            )
    return bytes(message.layers)
