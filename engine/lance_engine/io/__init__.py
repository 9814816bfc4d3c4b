"""Moves bytes, never interprets them: reads of ranges, atomic writes, listings."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.io.disk_cache import set_cache
    from lance_engine.io.external_access import (
        ALLOW_EXTERNAL,
        AllowExternal,
        is_below,
        local_folder,
        with_external_access,
    )
    from lance_engine.io.external_access import external_access as access_of
    from lance_engine.io.local import LocalStore
    from lance_engine.io.local_files import LocalErrors, local_error
    from lance_engine.io.memory import MemoryStore
    from lance_engine.io.resolve import open_store
    from lance_engine.io.store import Sink, Store, delete_quietly
    from lance_engine.io.substore import SubStore, files_uri, is_externally_committed
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "io.disk_cache": "set_cache",
            "io.external_access": (
                "ALLOW_EXTERNAL AllowExternal external_access=access_of is_below "
                "local_folder with_external_access"
            ),
            "io.local": "LocalStore",
            "io.local_files": "LocalErrors local_error",
            "io.memory": "MemoryStore",
            "io.resolve": "open_store",
            "io.store": "Sink Store delete_quietly",
            "io.substore": "SubStore files_uri is_externally_committed",
        },
    )
