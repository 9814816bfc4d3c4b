"""The interface of what every layer uses: caches, progress, messages, metrics, threads."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.cache import METADATA, memory_limit, set_memory_limit
    from lance_engine.interrupts import load
    from lance_engine.kernels import RowPieces
    from lance_engine.legible import legible as legible_text
    from lance_engine.legible import legible_line, without_secrets
    from lance_engine.lru_cache import LruCache
    from lance_engine.metrics import ScanMetrics
    from lance_engine.owned import LiveObjects, OwnedValues
    from lance_engine.plan_picture import PlanNode, PlanPicture, picture
    from lance_engine.progress import ProgressEvent, ProgressOption, Reporter
    from lance_engine.spelling import nearest as nearest_name
    from lance_engine.tasks import Task, start_thread
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "cache": "METADATA memory_limit set_memory_limit",
            "interrupts": "load",
            "kernels": "RowPieces",
            "legible": "legible_line legible=legible_text without_secrets",
            "lru_cache": "LruCache",
            "metrics": "ScanMetrics",
            "owned": "LiveObjects OwnedValues",
            "plan_picture": "PlanNode PlanPicture picture",
            "progress": "ProgressEvent ProgressOption Reporter",
            "spelling": "nearest=nearest_name",
            "tasks": "Task start_thread",
        },
    )
