"""What a request costs, as measured: a latency, plus bytes divided by a bandwidth."""

from __future__ import annotations

import threading
from typing import Final

# The cost of a request before the first measurement: typical of object stores within a region.
_LATENCY: Final = 0.02
_BANDWIDTH: Final = 50e6
# Shorter responses measure latency, longer ones bandwidth.
_SHORT, _LONG = 64 << 10, 512 << 10
# The weight of a new measurement relative to those before it.
_WEIGHT: Final = 1 / 8
# Seconds of processor time for each, and how many of them at a time get the bandwidth of one.
_PROCESSOR: Final = 0.0003
_STREAMS: Final = 8
#: Two ranges at most this far apart are read together whatever a request costs, and never at more than that.
LEAST_GAP, MOST_GAP = 64 << 10, 1 << 20
#: Neighbours are joined up to a length between these.
LEAST_JOINED, MOST_JOINED = 1 << 20, 8 << 20


class TransferModel:
    """Learns from every request that ends; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.latency = _LATENCY
        """Seconds from a request to the first byte."""
        self.bandwidth = _BANDWIDTH
        """Bytes per second of one request, from then on."""

    def observe(self, length: int, seconds: float) -> None:
        """Learn from the duration of a request for `length` bytes."""
        with self._lock:
            if length <= _SHORT:
                self.latency += (seconds - self.latency) * _WEIGHT
            elif length >= _LONG:
                measured = length / max(seconds - self.latency, seconds / 4, 1e-6)
                self.bandwidth += (measured - self.bandwidth) * _WEIGHT

    def seconds(self, requests: int, length: int, in_flight: int) -> float:
        """The time that this many requests for `length` bytes take, up to `in_flight` at a time."""
        rounds = -(-requests // in_flight)
        streams = min(requests, in_flight, _STREAMS)
        return rounds * self.latency + requests * _PROCESSOR + length / (self.bandwidth * max(streams, 1))

    @property
    def joined(self) -> int:
        """Neighbours are joined up to this many bytes: longer ones arrive sooner in parallel."""
        return int(min(max(2 * self.latency * self.bandwidth, LEAST_JOINED), MOST_JOINED))

    @property
    def gap(self) -> int:
        """This many unneeded bytes cost as much as another request."""
        return int(min(max(self.latency * self.bandwidth, LEAST_GAP), MOST_GAP))
