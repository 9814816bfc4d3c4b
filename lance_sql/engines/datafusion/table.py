"""Lance datasets in DataFusion.

DataFusion scans any `pyarrow.dataset.Dataset` subclass: it asks the dataset for fragments, one partition
each, and each fragment for a scanner. Our fragments are row ranges of similar size, so a single large file is
also read in parallel. Every filter that DataFusion can convert to a pyarrow expression is pushed down and not
applied again. There is no native plug-in, so this works with any major version of DataFusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads
from datafusion import SessionContext, Table
from lance_engine.base import public
from lance_engine.errors import LanceError
from lance_engine.scan import from_the_start, has_inner_structs

from lance_sql.engines.datafusion.planning import PlannedScan, Planning
from lance_sql.engines.datafusion.unpushed import planning_again
from lance_sql.engines.datafusion.versions import target_partitions
from lance_sql.engines.partitions import TableScanner, as_expression
from lance_sql.engines.plain_dataset import PlainDataset
from lance_sql.engines.statement_run import Runs
from lance_sql.engines.table import EngineTable
from lance_sql.text.tokens import quote

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from lance_engine.dataset import DatasetVersion


class DataFusionTable(PlainDataset):
    """A dataset in the form that DataFusion scans."""

    def __init__(
        self,
        table: EngineTable,
        partitions: int | None = None,
        planning: Planning | None = None,
        runs: Runs | None = None,
    ) -> None:
        super().__init__(table, partitions, runs)
        self._planning = planning or Planning()

    @property
    def schema(self) -> pa.Schema:
        # DataFusion compares the metadata of the planned schema with those of projections.
        return self.table.schema.remove_metadata()

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> TableScanner:
        """Called once per planned scan, for its schema."""
        names = self.table.schema.names if columns is None else list(columns)
        expression = as_expression(filter)
        self._planning.scanned(self, PlannedScan(tuple(names), expression))
        try:
            if expression is not None:
                self.table.filters.of_expression(expression)  # fails now if scans cannot test it
            return TableScanner(self.table, names, expression, run=self.runs.current)
        except LanceError as error:  # DataFusion only passes on its text
            if self.runs is not None and self.runs.current is not None:
                self.runs.current.failed(error)
            raise


@public
def register(
    context: SessionContext, name: str, dataset: DatasetVersion, *, system_columns: Sequence[str] = ()
) -> DataFusionTable:
    """Register `dataset` as the table `name` of `context`, replacing any table of that name.

    `system_columns`, such as ``_rowid``, become columns of the table. Returns the registered object.
    """
    known = EngineTable(dataset, name, system_columns, total_order=True)
    table = DataFusionTable(known, target_partitions(context))
    replace(context, name, table)
    if "sql" not in vars(context):  # that of `install` does this, too
        context.sql = planning_again(context)
    return table


def replace(context: SessionContext, name: str, table: Any) -> None:
    """Register a `pyarrow.dataset.Dataset` as the table `name` of `context`."""
    context.register_table(_free(context, name), Table(table))


def replace_data(context: SessionContext, name: str, data: Any) -> None:
    """Register Arrow data, which can be read any number of times, as the table `name` of `context`."""
    if isinstance(data, pads.Dataset):
        replace(context, name, data)
        return
    table = data if isinstance(data, pa.Table) else pa.table(data)
    if not has_inner_structs(table.schema):
        replace(context, name, pads.dataset(table))
        return
    # pyarrow's scanner would slice the batches.
    empty = pa.RecordBatch.from_pylist([], table.schema)
    batches = [from_the_start(batch) for batch in table.to_batches()]
    context.register_record_batches(_free(context, name), [batches or [empty]])


def _free(context: SessionContext, name: str) -> str:
    """`name` as SQL, no longer that of a table."""
    quoted = quote(name)
    if context.table_exist(quoted):
        context.deregister_table(quoted)
    return quoted
