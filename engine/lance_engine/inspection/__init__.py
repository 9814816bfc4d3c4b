"""A dataset as Arrow tables: versions, fragments, files, columns, pages, zones, indices; what is wrong."""

from lance_engine.inspection.health import health
from lance_engine.inspection.history import versions
from lance_engine.inspection.indices import indices
from lance_engine.inspection.inspector import Inspector
from lance_engine.inspection.layout import deletions, files, fragments
from lance_engine.inspection.refs import refs
from lance_engine.inspection.statistics import statistics
from lance_engine.inspection.storage import columns, pages
from lance_engine.inspection.transactions import transactions
from lance_engine.inspection.verify import verify
from lance_engine.inspection.zones import zones

__all__ = [
    "Inspector",
    "columns",
    "deletions",
    "files",
    "fragments",
    "health",
    "indices",
    "pages",
    "refs",
    "statistics",
    "transactions",
    "verify",
    "versions",
    "zones",
]
