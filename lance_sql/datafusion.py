"""Lance datasets in your own DataFusion context: `register` one by name, or `install` all names."""

from __future__ import annotations

from lance_sql.engines.datafusion.names import install, register_directory
from lance_sql.engines.datafusion.table import DataFusionTable, register

__all__ = ["DataFusionTable", "install", "register", "register_directory"]
