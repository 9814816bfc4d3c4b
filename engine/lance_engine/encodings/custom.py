"""Decoders for custom page encodings that are not part of the format, registered by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lance_engine.errors import InvalidArgumentError

if TYPE_CHECKING:
    from lance_engine import kernels
    from lance_engine.format.container import PageMetadata

# From the bytes of the encoding message and the page (its rows, its buffer ranges) to its kernel.
PageDecoder = Callable[[bytes, "PageMetadata"], "kernels.Page"]

_OWN_PREFIX = "lance.encodings"
_decoders: dict[str, PageDecoder] = {}


def register_decoder(name: str, decoder: PageDecoder) -> None:
    """Register `decoder` for pages whose encoding is the message type `name`, for this process.

    `decoder` is called once per page with the bytes of the message and the `PageMetadata`, and builds the
    page from `lance_engine.kernels`, which check their input. Registering a name again replaces its decoder.
    ValueError for the names of the format's own encodings.
    """
    if name.startswith(_OWN_PREFIX):
        raise InvalidArgumentError(f"'{name}' is a built-in encoding: its decoder cannot be replaced")
    _decoders[name] = decoder


def unregister_decoder(name: str) -> None:
    """Unregister the decoder of `name`, if registered. Open datasets continue to use it."""
    _decoders.pop(name, None)


def custom_page(metadata: PageMetadata) -> kernels.Page | None:
    """The kernel for a page from a registered decoder; None for encodings without one."""
    decoder = _decoders.get(metadata.encoding.name)
    return None if decoder is None else decoder(metadata.encoding.value, metadata)
