"""Settings of DataFusion contexts."""

from __future__ import annotations

import os

from datafusion import SessionConfig, SessionContext

#: Maximum size in bytes of a join's small side, divided by the number of partitions, for a single hash table.
_ONE_HASH_TABLE_BYTES = 128 << 20


def session_config() -> SessionConfig:
    """Default settings of our sessions; contexts of users keep their own settings."""
    # The sizes of small sides are known exactly, since they are in memory. Building one hash table on one
    # thread is then cheaper than moving the rows of both sides between partitions, up to a size that
    # decreases with the number of waiting threads.
    single = _ONE_HASH_TABLE_BYTES // (os.cpu_count() or 1)
    return (
        SessionConfig()
        .with_information_schema(True)
        .set("datafusion.optimizer.hash_join_single_partition_threshold", str(single))
        # How many rows a join returns is a guess that takes every key for unique: never a reason to build
        # the table from these rows on one thread.
        .set("datafusion.optimizer.hash_join_single_partition_threshold_rows", "0")
    )


def nulls_are_last(context: SessionContext, descending: bool) -> bool:
    """Whether nulls come last in an ORDER BY without NULLS FIRST or NULLS LAST."""
    try:
        found = context.sql("SHOW datafusion.sql_parser.default_null_ordering").to_pydict()["value"]
    except Exception:  # DataFusion has no specific class; contexts may not expose their settings
        found = []
    order = found[0] if found else ""
    return order == "nulls_last" or order == ("nulls_min" if descending else "nulls_max")
