"""Settings of DataFusion contexts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from lance_sql.engines.datafusion.versions import puts_nulls_last

if TYPE_CHECKING:
    from lance_sql.syntax.scopes import Names

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


#: Its types show what names in it mean: contexts may not expose their settings.
_NAMES = """SELECT "a" AS quoted, A AS plain FROM (SELECT 1 AS "a", 'text' AS "A") AS names"""


def matching_names(context: SessionContext) -> Names | None:
    """Which names are the same; None if names in quotation marks are strings, as in some dialects."""
    try:
        schema = context.sql(_NAMES).schema()
    except Exception:  # DataFusion has no specific class
        return None
    quoted, plain = (pa.types.is_integer(kind) for kind in schema.types)
    if not quoted:
        return None
    return "lower case" if plain else "exact"


def nulls_are_last(context: SessionContext, descending: bool) -> bool:
    """Whether nulls come last in an ORDER BY without NULLS FIRST or NULLS LAST."""
    text = f"SELECT a FROM (SELECT 1 AS a) AS names ORDER BY a{' DESC' if descending else ''}"
    return puts_nulls_last(context.sql(text).logical_plan())
