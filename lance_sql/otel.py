"""OpenTelemetry: spans and metrics of statements, scans, requests and commits."""

from __future__ import annotations

import time
from collections.abc import Callable

from lance_engine.base import Event, observe

from lance_sql.errors import extra

with extra("otel"):
    from opentelemetry.metrics import MeterProvider, get_meter
    from opentelemetry.trace import Status, StatusCode, TracerProvider, get_tracer


__all__ = ["instrument"]

#: for each kind of event, its counter, and counters of its numbers
_COUNTERS = {
    "statement": ("lance_sql.statements", {}),
    "scan": (
        "lance_sql.scans",
        {
            "rows": "lance_sql.scan.rows",
            "bytes_read": "lance_sql.scan.bytes",
            "requests": "lance_sql.scan.requests",
            "cache_hits": "lance_sql.scan.cache_hits",
            "cache_bytes": "lance_sql.scan.cache_bytes",
        },
    ),
    "request": ("lance_sql.requests", {}),
    "retry": ("lance_sql.retries", {}),
    "commit": ("lance_sql.commits", {}),
    "conflict": ("lance_sql.conflicts", {}),
}
#: attributes with few values, which metrics have too
_DIMENSIONS = ("engine", "operation", "outcome")


def instrument(
    tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> Callable[[], None]:
    """Report what this process does to OpenTelemetry, until the returned function is called.

    The providers are those of the process by default. Spans are children of the span that is current in the
    thread where they end. Text of statements has no credentials, but its constants.
    """
    tracer = get_tracer("lance_sql", tracer_provider=tracer_provider)
    meter = get_meter("lance_sql", meter_provider=meter_provider)
    counters = {
        name: meter.create_counter(name)
        for total, numbers in _COUNTERS.values()
        for name in (total, *numbers.values())
    }
    durations = meter.create_histogram("lance_sql.duration", unit="s")

    def record(event: Event) -> None:
        end = time.time_ns()
        attributes = {f"lance_sql.{name}": value for name, value in event.attributes.items()}
        span = tracer.start_span(
            f"lance_sql.{event.kind}", start_time=end - int(event.seconds * 1e9), attributes=attributes
        )
        if event.error is not None:
            span.set_status(Status(StatusCode.ERROR, event.error))
        span.end(end)
        dimensions = {
            f"lance_sql.{name}": event.attributes[name] for name in _DIMENSIONS if name in event.attributes
        }
        total, numbers = _COUNTERS[event.kind]
        counters[total].add(1, dimensions)
        for name, counter in numbers.items():
            counters[counter].add(event.attributes[name], dimensions)
        durations.record(event.seconds, {"lance_sql.kind": event.kind, **dimensions})

    return observe(record)
