"""Amounts as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def counted(count: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_bytes(size: int) -> str:
    """``512 B``, ``1.5 kB``, ``3.2 MB`` ...: powers of 1000."""
    amount, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


def interval_text(value: pa.MonthDayNano) -> str:
    """``14 months 3 days 01:30:00.000001``, without the parts that are zero; zero is ``00:00:00``."""
    parts = [counted(count, unit) for count, unit in ((value.months, "month"), (value.days, "day")) if count]
    if value.nanoseconds or not parts:
        seconds, fraction = divmod(abs(value.nanoseconds), 10**9)
        text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        digits = f".{fraction:09}".rstrip("0").rstrip(".")
        parts.append(("-" if value.nanoseconds < 0 else "") + text + digits)
    return " ".join(parts)
