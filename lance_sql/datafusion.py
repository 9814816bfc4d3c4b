"""Lance datasets in your own DataFusion context: `register` one by name, or `install` all names."""

from __future__ import annotations

from lance_sql.errors import extra

with extra("datafusion"):
    from lance_sql.engines.datafusion.table import register
    from lance_sql.installed.datafusion import install, register_directory

__all__ = ["install", "register", "register_directory"]


def __dir__() -> list[str]:
    return sorted(__all__)
