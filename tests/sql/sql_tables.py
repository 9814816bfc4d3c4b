"""The small tables that the SQL tests query, as Arrow tables."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pyarrow as pa

NAN, INF = math.nan, math.inf


def measurements() -> pa.Table:
    """Twelve rows with awkward values: nulls, NaN, infinities, -0.0, empty and non-ASCII strings."""
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


ALL = {"measurements": measurements, "customers": customers, "orders": orders}
