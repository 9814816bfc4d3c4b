"""Statements that metadata answers, and their answers, kept for texts that run again."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow.types as at
from lance_engine.recent import Recent

from lance_sql.engines.finished import Finished
from lance_sql.pushdown.whole_table import MetadataQuery, named_columns, whole_table_aggregates

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion

    from lance_sql.catalog.binding import Bound
    from lance_sql.catalog.catalog import Catalog
    from lance_sql.engines.base import Engine, Parameters, Query
    from lance_sql.text.statement import Statement

#: Number of texts whose answers are kept.
_KEPT_TEXTS: Final = 64


class _Kept(NamedTuple):
    """An answer from a version of a dataset, and the state of the engine that gave it names and types."""

    dataset: weakref.ref[DatasetVersion]
    state: object
    rows: pa.Table


class MetadataAnswers:
    """The answers of one session, to statements over the datasets of `catalog`."""

    def __init__(self, catalog: Catalog, engine: Engine) -> None:
        self._catalog = catalog
        self._engine = engine
        self._kept: Recent[str, _Kept] = Recent(_KEPT_TEXTS)

    @property
    def _allows(self) -> bool:
        return self._engine.pushdowns.allow("metadata_aggregates")

    def known(self, statement: Statement, bound: Bound, parameters: Parameters) -> Finished | None:
        """The answer to `statement` that was given before; None if it has to be planned."""
        # In a transaction, an engine may refuse all statements after an error.
        if parameters or self._catalog.transaction is not None or not self._allows:
            return None
        kept = self._kept.get(bound.text)
        if kept is None or kept.state != self._engine.state:
            return None
        dataset = _dataset(statement, bound)
        return Finished(kept.rows) if dataset is not None and kept.dataset() is dataset else None

    def of(self, statement: Statement, bound: Bound, planned: Query) -> MetadataQuery | None:
        """The result of `statement` from metadata, without a scan; None if `planned` has to run."""
        aggregates = whole_table_aggregates(statement) if self._allows else None
        dataset = None if aggregates is None else _dataset(statement, bound)
        if aggregates is None or dataset is None:
            return None
        values = named_columns(aggregates, dataset, folds=self._engine.capabilities.folds_names)
        if values is None:
            return None
        kinds = [dataset.storage_schema.field(name).type for _, name in values if name is not None]
        has_strings = any(at.is_string(kind) or at.is_large_string(kind) for kind in kinds)

        def holds() -> bool:
            """Whether the engine computes the aggregates as metadata has them."""
            engine = self._engine
            return not engine.replaces_aggregates() and (not has_strings or engine.compares_bytes())

        if not holds():
            return None
        version, state = weakref.ref(dataset), self._engine.state

        def answered(rows: pa.Table) -> None:
            if state is not None:  # as planned: after a change, the answer is not used
                self._kept[bound.text] = _Kept(version, state, rows)

        return MetadataQuery(planned, dataset, values, holds, answered)


def _dataset(statement: Statement, bound: Bound) -> DatasetVersion | None:
    """The dataset of the only table of `statement`."""
    tables = [reference for reference in statement.references if reference.certain]
    return bound.datasets.get(tables[0].name) if len(tables) == 1 and not tables[0].part else None
