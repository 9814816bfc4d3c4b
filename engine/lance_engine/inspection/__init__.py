"""A dataset as Arrow tables: versions, fragments, files, columns, pages, zones and indices."""

from lance_engine.inspection.history import versions
from lance_engine.inspection.indices import indices
from lance_engine.inspection.inspector import Inspector
from lance_engine.inspection.layout import files, fragments
from lance_engine.inspection.storage import columns, pages
from lance_engine.inspection.zones import zones

__all__ = ["Inspector", "columns", "files", "fragments", "indices", "pages", "versions", "zones"]
