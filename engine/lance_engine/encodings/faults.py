"""Errors of the kernels as `LanceError` subclasses."""

from __future__ import annotations

from typing import Any

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError

_NEWER = "Read it with a newer release, or exclude the column"
_CONFIGURE = (
    "Read it with a newer release, register a decoder (lance_engine.encodings.register_decoder), "
    "or exclude the column"
)


def fault_of(error: BaseException, **place: Any) -> LanceError | None:
    """The error to raise instead of a kernel error, with `place` and its own details; None for others."""
    if isinstance(error, kernels.CorruptDataError):
        what, column, page, encoding = error.args
        return CorruptFileError(what, **place).at(column=column, page=page, encoding=encoding)
    if isinstance(error, kernels.UnsupportedError):
        what, page, encoding, missing = error.args
        remedy = _NEWER if missing is None else _CONFIGURE
        fault = UnsupportedFeatureError(_sentence(what), remedy=remedy, **place)
        return fault.at(page=page, encoding=encoding if missing is None else None)
    return None


def _sentence(what: str) -> str:
    return what[:1].upper() + what[1:]
