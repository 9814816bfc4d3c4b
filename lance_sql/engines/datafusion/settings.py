"""Settings of a DataFusion context that decide what a statement means."""

from __future__ import annotations

from datafusion import SessionContext


def nulls_are_last(context: SessionContext, descending: bool) -> bool:
    """Whether nulls come last in an order that does not say where."""
    try:
        found = context.sql("SHOW datafusion.sql_parser.default_null_ordering").to_pydict()["value"]
    except Exception:  # DataFusion has no class of its own; contexts may keep their settings to themselves
        found = []
    order = found[0] if found else ""
    return order == "nulls_last" or order == ("nulls_min" if descending else "nulls_max")
