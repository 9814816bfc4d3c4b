"""FSST: every byte of a string is the number of a symbol of 1 to 8 bytes, or 255 before a literal byte."""

from __future__ import annotations

from lance_engine.errors import CorruptFileError

from reference.sections import section

TABLE_BYTES = 2312
MAGIC = b"TSSF"
ESCAPE = 255


def parse_symbol_table(table: bytes) -> list[bytes] | None:
    """The symbols by code, or None when the strings are stored as they are.

    Byte 0 is the number n of symbols, byte 3 the switch (1 = coded), bytes 4 to 7 a magic number; from byte 8
    on n symbols of 8 bytes (zero padded), then n lengths of one byte.
    """
    if len(table) != TABLE_BYTES or table[4:8] != MAGIC or table[3] > 1:
        raise CorruptFileError("malformed FSST symbol table")
    if table[3] == 0:
        return None
    count = table[0]
    lengths = section(table, 8 + 8 * count, count, "FSST symbol lengths")
    if any(not 1 <= length <= 8 for length in lengths):
        raise CorruptFileError("an FSST symbol has 1 to 8 bytes")
    return [table[8 + 8 * code : 8 + 8 * code + length] for code, length in enumerate(lengths)]


def decode_value(coded: bytes, symbols: list[bytes] | None) -> bytes:
    """One string; the coding keeps no state between strings."""
    if symbols is None:
        return coded
    out = bytearray()
    position = 0
    while position < len(coded):
        code = coded[position]
        if code == ESCAPE:
            out += section(coded, position + 1, 1, "byte after an FSST escape")
            position += 2
        elif code < len(symbols):
            out += symbols[code]
            position += 1
        else:
            raise CorruptFileError(f"FSST code {code} of {len(symbols)}")
    return bytes(out)


def decode(coded: list[bytes], table: bytes) -> list[bytes]:
    """All strings of a chunk or page; `table` is the serialized symbol table."""
    symbols = parse_symbol_table(table)
    return [decode_value(value, symbols) for value in coded]
