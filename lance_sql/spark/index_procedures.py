"""The procedures for indices, and the options of lance-spark for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lance_engine.errors import InvalidArgumentError, UnsupportedFeatureError

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.spark.procedure_results import Listing, Row
from lance_sql.spark.search_table import metric_of
from lance_sql.statements.options import StatementOptions, constant

#: Names of lance-spark for kinds and options.
_KINDS: Final = {"fts": "inverted"}
_OPTIONS: Final = {"zone_size": "page_rows", "distance_type": "metric"}
#: Options of lance-spark about how to do the work, which is decided here.
_HINTS: Final = ("build_mode", "rows_per_range", "num_segments", "prefetch_distance")


def create_index(
    dataset: SqlDataset,
    column: str,
    kind: str,
    replace: bool,
    name: str | None = None,
    options: Mapping[str, str | None] | None = None,
) -> Row:
    if "," in column and column not in dataset.schema.names:
        raise UnsupportedFeatureError(
            f"Indices must be on one column, not on {column}", remedy="Create an index for each column"
        )
    column = column.replace("`", "")
    values: dict[str, Any] = {
        _OPTIONS.get(key.lower(), key.lower()): constant(text)
        for key, text in (options or {}).items()
        if text is not None and key.lower() not in _HINTS
    }
    if "metric" in values:
        values["metric"] = metric_of(values["metric"])
    try:
        changed = dataset.create_index(
            column, _KINDS.get(kind.lower(), kind), name=name, replace=replace, **values
        )
    except TypeError as error:  # an option that this kind does not have
        raise InvalidArgumentError(str(error), path=dataset.uri) from error
    index = name or f"{column}_idx"
    return {
        "index": index,
        "version": changed.version,
        "fragments_indexed": changed.index_statistics(index)["fragments"],
        "index_name": index,
    }


def drop_index(dataset: SqlDataset, name: str) -> Row:
    version = dataset.drop_index(name).version
    return {"index": name, "version": version, "index_name": name, "status": "dropped"}


def optimize_index(dataset: SqlDataset, name: str, options: Mapping[str, str] | None = None) -> Row:
    """Cover the rows that were added since the index was built; its options stay."""
    read = StatementOptions("the maintenance of an index", {k.lower(): v for k, v in (options or {}).items()})
    retrain = bool(read.flag("retrain"))
    read.finish()
    before = dataset.index_statistics(name)
    changed = dataset.optimize_indices([name], retrain=retrain)
    after = changed.index_statistics(name)
    known = {segment["uuid"] for segment in before["segments"]}
    return {
        "index_name": name,
        "fragments_indexed": before["uncovered_fragments"] - after["uncovered_fragments"],
        "segments_before": len(before["segments"]),
        "segments_after": len(after["segments"]),
        "segments_added": sum(segment["uuid"] not in known for segment in after["segments"]),
    }


_SHOWN: Final = {
    "name": "STRING",
    "fields": "ARRAY<STRING>",
    "index_type": "STRING",
    "num_indexed_fragments": "BIGINT",
    "num_indexed_rows": "BIGINT",
    "num_unindexed_fragments": "BIGINT",
    "num_unindexed_rows": "BIGINT",
    "num_segments": "BIGINT",
}


def show_indexes(dataset: SqlDataset) -> Listing:
    rows = []
    for name in dict.fromkeys(dataset.inspect.indices().column("name").to_pylist()):
        known = dataset.index_statistics(name)
        counts = [known[key] for key in ("fragments", "rows", "uncovered_fragments", "uncovered_rows")]
        rows.append([name, known["columns"], known["kind"].lower(), *counts, len(known["segments"])])
    return Listing(_SHOWN, rows)
