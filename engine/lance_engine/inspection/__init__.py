"""A dataset as Arrow tables: versions, fragments, files, columns, pages, zones, indices; what is wrong."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.inspection.indices import indices as list_indices
    from lance_engine.inspection.inspector import Inspector
    from lance_engine.inspection.transactions import read_transaction
    from lance_engine.inspection.zones import all_zone_maps, as_text
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "inspection.indices": "indices=list_indices",
            "inspection.inspector": "Inspector",
            "inspection.transactions": "read_transaction",
            "inspection.zones": "all_zone_maps as_text",
        },
    )
