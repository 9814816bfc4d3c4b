"""Encodings of pages: tables of those of the format, and a place for others."""

from lance_engine.encodings.custom import PageDecoder, register_decoder, unregister_decoder

__all__ = ["PageDecoder", "register_decoder", "unregister_decoder"]
