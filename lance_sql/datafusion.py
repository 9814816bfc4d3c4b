"""Lance datasets in your own DataFusion context: `register` one by name, or `install` all names."""

from __future__ import annotations

from lance_sql.engines.datafusion.table import DataFusionTable, register
from lance_sql.installed.datafusion import install, register_directory

__all__ = ["DataFusionTable", "install", "register", "register_directory"]
