"""Lance datasets in a DataFusion context of your own: `register` one by name, or `install` all names."""

from __future__ import annotations

from lance_sql.engines.datafusion import DataFusionTable, register
from lance_sql.engines.datafusion_names import install, register_directory

__all__ = ["DataFusionTable", "install", "register", "register_directory"]
