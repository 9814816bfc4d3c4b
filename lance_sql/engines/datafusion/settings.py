"""Settings of DataFusion contexts."""

from __future__ import annotations

import os

from datafusion import SessionConfig, SessionContext

#: Bytes of a join's small side, over the number of partitions, up to which it gets one hash table.
_ONE_HASH_TABLE_BYTES = 128 << 20


def session_config() -> SessionConfig:
    """What a session of ours starts with; contexts that users bring keep their own settings."""
    # The sizes of small sides are known exactly, for they are in memory. To build one hash table on one
    # thread is then cheaper than to move the rows of both sides between partitions, up to a size that falls
    # with the number of threads that would wait.
    single = _ONE_HASH_TABLE_BYTES // (os.cpu_count() or 1)
    return (
        SessionConfig()
        .with_information_schema(True)
        .set("datafusion.optimizer.hash_join_single_partition_threshold", str(single))
    )


def nulls_are_last(context: SessionContext, descending: bool) -> bool:
    """Whether nulls come last in an order that does not say where."""
    try:
        found = context.sql("SHOW datafusion.sql_parser.default_null_ordering").to_pydict()["value"]
    except Exception:  # DataFusion has no class of its own; contexts may keep their settings to themselves
        found = []
    order = found[0] if found else ""
    return order == "nulls_last" or order == ("nulls_min" if descending else "nulls_max")
