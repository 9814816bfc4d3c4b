"""Descriptions of pages for people: layout and encodings in one line."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.faults import fault_of
from lance_engine.format.container import EncodedMessage


def describe_page(encoding: EncodedMessage) -> str:
    """For example ``mini-block(fsst(variable))``; the name of the message for a custom encoding.

    CorruptFileError for a description that is invalid.
    """
    try:
        return kernels.describe_page(encoding.name, encoding.value)
    except kernels.CorruptDataError as error:
        raise fault_of(error) or error from error
