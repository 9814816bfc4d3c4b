"""A plugin for dbt-duckdb: Lance datasets as sources of models and as their output.

In ``profiles.yml``: ``plugins: [{module: lance_sql.dbt, alias: lance, config: {directory: lake}}]``.
"""

from __future__ import annotations

from typing import Any

from dbt.adapters.duckdb.plugins import BasePlugin
from lance_engine.errors import InvalidArgumentError

from lance_sql.api import open as open_dataset
from lance_sql.api import write
from lance_sql.installed.duckdb import install

__all__ = ["Plugin"]


class Plugin(BasePlugin):
    """Makes datasets available in models: by path, and datasets of `directory` by name."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        self._directory = plugin_config.get("directory")
        self._storage_options = plugin_config.get("storage_options")

    def configure_connection(self, conn: Any) -> None:
        install(conn, self._directory, storage_options=self._storage_options)

    def load(self, source_config: Any) -> Any:
        """The dataset of a source, at the version in its metadata, if given."""
        path = _dataset(source_config.meta, f"source {source_config.table_name()}")
        return open_dataset(
            path, version=source_config.meta.get("version"), storage_options=self._storage_options
        )

    def store(self, target_config: Any) -> None:
        """Write the rows of an ``external`` model, which dbt saved as Parquet, to its dataset."""
        options = target_config.config
        path = _dataset(options, f"model {target_config.relation.identifier}")
        write(
            target_config.location.path,
            path,
            mode=options.get("mode", "overwrite"),
            storage_options=self._storage_options,
        )


def _dataset(options: dict[str, Any], place: str) -> str:
    path = options.get("dataset")
    if not isinstance(path, str):
        remedy = "Set dataset: in its config"
        raise InvalidArgumentError(f"{place} needs the path of a Lance dataset", remedy=remedy)
    return path
