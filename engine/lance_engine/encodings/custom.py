"""Decoders for encodings of pages that are not part of the format: registered by a call, found by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lance_engine.errors import InvalidArgumentError

if TYPE_CHECKING:
    from lance_engine import kernels
    from lance_engine.format.container import PageMetadata

# From the bytes of the encoding's message and the page (its rows, the ranges of its buffers) to its kernel.
PageDecoder = Callable[[bytes, "PageMetadata"], "kernels.Page"]

_OWN_PREFIX = "lance.encodings"
_decoders: dict[str, PageDecoder] = {}


def register_decoder(name: str, decoder: PageDecoder) -> None:
    """Read pages whose encoding is the message type `name` with `decoder`, in this process, from now on.

    `decoder` is called once per page with the bytes of the message and the `PageMetadata`, and puts the page
    together of `lance_engine.kernels`, which check what they read. Registering a name again replaces its
    decoder. ValueError for the names of the format's own encodings.
    """
    if name.startswith(_OWN_PREFIX):
        raise InvalidArgumentError(f"'{name}' is a built-in encoding: its decoder cannot be replaced")
    _decoders[name] = decoder


def unregister_decoder(name: str) -> None:
    """Drop the decoder of `name`; does nothing if it is not registered. Open datasets keep theirs."""
    _decoders.pop(name, None)


def custom_page(metadata: PageMetadata) -> kernels.Page | None:
    """The kernel that a registered decoder makes of a page; None for encodings without one."""
    decoder = _decoders.get(metadata.encoding.name)
    return None if decoder is None else decoder(metadata.encoding.value, metadata)
