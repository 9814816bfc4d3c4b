"""The interface of what every layer uses: values, schemas, caches, progress, messages, metrics, threads."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.arrow_values import array, of_numpy, scalar, to_numpy
    from lance_engine.cache import METADATA, memory_limit, set_memory_limit
    from lance_engine.distinct import distinct as distinct_numbers
    from lance_engine.events import Event, observe, timed
    from lance_engine.interrupts import load
    from lance_engine.kernels import RowPieces
    from lance_engine.legible import legible as legible_text
    from lance_engine.legible import legible_line, without_secrets
    from lance_engine.logical_types import (
        EXTENSION_METADATA,
        EXTENSION_NAME,
        OPAQUE_EXTENSION,
        plain_field,
        text_metadata,
        viewed,
        with_extensions,
        with_types,
        without_extensions,
    )
    from lance_engine.lru_cache import LruCache
    from lance_engine.metrics import ScanMetrics
    from lance_engine.plan_picture import PlanNode, PlanPicture, picture
    from lance_engine.progress import ProgressEvent, ProgressOption, Reporter
    from lance_engine.public import Public, public, unknown_option
    from lance_engine.python_values import python_rows as rows_as_python
    from lance_engine.python_values import python_values as values_as_python
    from lance_engine.schema_tree import BLOB_ENCODING, Schema
    from lance_engine.spelling import nearest as nearest_name
    from lance_engine.tasks import Task, start_thread
    from lance_engine.weak_identity import LiveObjects, WeakIdentityDict
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "arrow_values": "array of_numpy scalar to_numpy",
            "cache": "METADATA memory_limit set_memory_limit",
            "distinct": "distinct=distinct_numbers",
            "events": "Event observe timed",
            "interrupts": "load",
            "kernels": "RowPieces",
            "legible": "legible_line legible=legible_text without_secrets",
            "logical_types": (
                "EXTENSION_METADATA EXTENSION_NAME OPAQUE_EXTENSION plain_field "
                "text_metadata viewed with_extensions with_types without_extensions"
            ),
            "lru_cache": "LruCache",
            "metrics": "ScanMetrics",
            "weak_identity": "LiveObjects WeakIdentityDict",
            "plan_picture": "PlanNode PlanPicture picture",
            "progress": "ProgressEvent ProgressOption Reporter",
            "public": "Public public unknown_option",
            "python_values": "python_rows=rows_as_python python_values=values_as_python",
            "schema_tree": "BLOB_ENCODING Schema",
            "spelling": "nearest=nearest_name",
            "tasks": "Task start_thread",
        },
    )
