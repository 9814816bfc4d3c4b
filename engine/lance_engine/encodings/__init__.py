"""Encodings of pages: tables of the format's encodings, and a registry for custom ones."""

from lance_engine.encodings.custom import PageDecoder, register_decoder, unregister_decoder

__all__ = ["PageDecoder", "register_decoder", "unregister_decoder"]
