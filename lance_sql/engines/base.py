"""What the SQL front door asks of an engine, and the table of engines."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from lance_engine.dataset import Dataset
from lance_engine.errors import LanceError

from lance_sql.errors import EngineNotInstalledError

Parameters = Sequence[Any] | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What an engine asks of one Lance table in a plan.

    `columns`: asked for, None where the plan does not tell. `pushed`: predicates our scan applies.
    `residual`: predicates over this table that were offered to the scan and stay with the engine.
    """

    name: str
    dataset: Dataset
    columns: tuple[str, ...] | None
    pushed: tuple[str, ...]
    residual: tuple[str, ...]


class Query(Protocol):
    """A planned statement. Each call runs it again."""

    def to_table(self) -> pa.Table: ...

    def stream(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]: ...

    def translate(self, error: Exception) -> LanceError:
        """Our error for one that was raised while the batches of `stream` were read."""


class Engine(Protocol):
    """A session of one SQL engine."""

    name: str
    #: whether a statement can start while the rows of another are still being streamed
    runs_statements_side_by_side: bool

    def register(self, name: str, dataset: Dataset, system_columns: Sequence[str]) -> None:
        """Make `name` mean `dataset`; what the name meant before is forgotten."""

    def unregister(self, name: str) -> None:
        """Forget the dataset registered as `name`."""

    def register_other(self, name: str, data: Any) -> None:
        """Make `name` mean Arrow data or anything else that the engine itself can scan."""

    def query(self, text: str, params: Parameters) -> Query:
        """Plan `text`; statements without a result run at once. Raises `LanceError`."""

    def explain(self, text: str, params: Parameters) -> tuple[str, list[ScanReport]]:
        """The engine's plan as text, and the scans of Lance tables in it."""

    def close(self) -> None: ...


#: engine name -> (module, class of the session object that `connect` also accepts)
_ENGINES = {
    "duckdb": ("lance_sql.engines.duckdb", "DuckDBPyConnection"),
    "datafusion": ("lance_sql.engines.datafusion", "SessionContext"),
}


def start(engine: Any) -> Engine:
    """A new session for an engine's name, or the engine around an open session object of it."""
    session_class = type(engine).__name__
    for name, (module_name, session_name) in _ENGINES.items():
        if engine == name or session_class == session_name:
            try:
                module = importlib.import_module(module_name)
            except ImportError as error:
                raise EngineNotInstalledError(
                    f"the SQL engine {name!r} cannot be imported: {error}", remedy=f"Try: pip install {name}"
                ) from error
            started: Engine = module.start(None if engine == name else engine)
            return started
    raise EngineNotInstalledError(
        f"unknown SQL engine {engine!r}", remedy=f"Choose from {', '.join(_ENGINES)}"
    )
