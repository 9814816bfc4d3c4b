"""The small tables that the SQL tests query, as Arrow tables."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pyarrow as pa

NAN, INF = math.nan, math.inf


def measurements() -> pa.Table:
    """Twelve rows with difficult values: nulls, NaN, infinities, -0.0, empty and non-ASCII strings."""
    # fmt: off
    amounts = ["1", "2.5", None, "100.25", "-3.75", "0", "2.5", None, "99.99", "1.01", "12345678.9", "0.01"]
    # fmt: on
    first_day = datetime.date(2024, 2, 27)
    noon = datetime.datetime(2024, 2, 27, 12, 0, 0, 250000)
    return pa.table(
        {
            "id": pa.array(range(12), pa.int64()),
            "value": pa.array([0.5, -1.0, NAN, None, 2.0, 3.5, INF, -INF, NAN, 0.0, -0.0, 10.0]),
            "amount": pa.array([a and Decimal(a) for a in amounts], pa.decimal128(12, 2)),
            "label": pa.array(
                [
                    "apple", "Banana", None, "", "cherry", "apple",
                    "äpfel", "o'hara", None, "apple pie", "banana", "50% off",
                ]
            ),
            "flag": pa.array([True, False, None, True, None, False, True, True, False, None, True, False]),
            "day": pa.array([None if i == 7 else first_day + datetime.timedelta(days=i) for i in range(12)]),
            "taken": pa.array([noon + datetime.timedelta(hours=i * 7) for i in range(12)]),
            "small": pa.array([i % 3 for i in range(12)], pa.int8()),
        }
    )  # fmt: skip


def customers() -> pa.Table:
    return pa.table(
        {
            "customer": pa.array([1, 2, 3, 4], pa.int32()),
            "name": ["Ada", "Bob", "Cyd", None],
            "country": ["UK", "US", "US", "FR"],
        }
    )


def orders() -> pa.Table:
    return pa.table(
        {
            "order_id": pa.array([10, 11, 12, 13, 14, 15], pa.int64()),
            "customer": pa.array([1, 1, 2, 3, 3, None], pa.int32()),
            "total": pa.array([20.0, 30.5, 5.0, 12.25, None, 7.0]),
        }
    )


def events() -> pa.Table:
    """Six rows of types that are more than a number or a string, each with a null."""
    noon = datetime.datetime(2024, 3, 31, 12, 0, tzinfo=datetime.UTC)
    hours = [-13, -11, 0, 12, None, 24 * 300]
    cities = ["Oslo", "Lima", None, "Oslo", "Rome", "Kyiv"]
    seats = ["a", "b", None, "b", None, "b"]
    return pa.table(
        {
            "id": pa.array(range(6), pa.int32()),
            "seen": pa.array(
                [None if h is None else noon + datetime.timedelta(hours=h) for h in hours],
                pa.timestamp("us", "UTC"),
            ),
            "place": pa.array(
                [
                    None if i == 2 else {"city": city, "spot": {"row": i, "seat": seat}}
                    for i, (city, seat) in enumerate(zip(cities, seats, strict=True))
                ]
            ),
            "tags": pa.array([["x", "y"], [], None, ["y"], ["z", None, "x"], ["y", "y"]]),
            "big": pa.array([2**63 - 1, -(2**63), 0, None, 1, -1], pa.int64()),
            "price": pa.array([Decimal("0.10"), Decimal("0.20"), Decimal("-9999999999.99"), None,
                               Decimal("9999999999.99"), Decimal("0.30")], pa.decimal128(18, 2)),
            "raw": pa.array([b"", b"\x00\xff", None, b"abc", b"abd", b"ab"]),
            "ratio": pa.array([0.5, NAN, None, -0.0, INF, 1e-300], pa.float32()),
            "tiny": pa.array([0, 255, None, 128, 7, 1], pa.uint8()),
        }
    )  # fmt: skip


ALL = {"measurements": measurements, "customers": customers, "events": events, "orders": orders}
