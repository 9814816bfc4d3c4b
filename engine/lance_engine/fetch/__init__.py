"""Byte ranges to buffers: planned before they are needed, joined, split, in order, many in flight.

Requests are independent of batches. Code that knows what will be read plans it (`ReadAhead`), code that
needs bytes now requests all of them at once (`Fetcher`), and decoders wait for buffers, not for a client. It
works over any `lance_engine.io.Store`; local files are memory-mapped and do not use it.
"""

from lance_engine.fetch.current import planned_for, reading_planned
from lance_engine.fetch.fetcher import Fetcher
from lance_engine.fetch.model import LEAST_GAP, TransferModel
from lance_engine.fetch.pool import (
    MOST_AHEAD,
    each_ahead,
    helpers,
    ordered_ahead,
    requests_in_flight,
    set_requests_in_flight,
)
from lance_engine.fetch.ranges import Span, joined
from lance_engine.fetch.read_ahead import FileBuffers, PlannedRequest, ReadAhead

__all__ = [
    "LEAST_GAP",
    "MOST_AHEAD",
    "Fetcher",
    "FileBuffers",
    "PlannedRequest",
    "ReadAhead",
    "Span",
    "TransferModel",
    "each_ahead",
    "helpers",
    "joined",
    "ordered_ahead",
    "planned_for",
    "reading_planned",
    "requests_in_flight",
    "set_requests_in_flight",
]
