"""A Lance dataset as SQL engines see it: a declared schema, and scans that return exactly these types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from lance_engine.base import LruCache, WeakIdentityDict
from lance_engine.errors import LanceError
from lance_engine.scan import SYSTEM_FIELDS

from lance_sql.engines.added_columns import AddedColumns
from lance_sql.engines.table_scan import TableScan

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.scan import CodeColumn, FilterPlan, ScanSplit

    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.engines.table_filters import TableFilters

#: Number of scans of a table, and for each condition, that are kept for the next statement: of a few
#: statements, with one for each partition.
_CACHED_SCANS: Final = 64
#: Engines receive strings as dictionaries where a batch has at least this many rows per entry: each batch has
#: the whole dictionary of its page, which engines convert again and look values up in out of order.
_ROWS_PER_ENTRY: Final = 4


class _ScanKey(NamedTuple):
    """The columns of a scan, and its ranges of rows, None for all rows."""

    columns: tuple[str, ...]
    splits: tuple[ScanSplit, ...] | None


class EngineTable:
    """`dataset` under the name that an engine uses for it.

    `system_columns` are declared after the data columns. `declare` maps a column that the engine cannot read
    to one that it can. `dictionaries` returns dictionary-encoded strings as such, unless they have too many
    entries for the size of a batch. `narrow_decimals` returns decimals of up to 18 digits in 64 bits.
    `batch_rows` is the maximum number of rows per batch. `total_order` is for engines that order NaN by its
    sign. `added` are columns in addition to those of the dataset.
    """

    def __init__(
        self,
        dataset: DatasetVersion,
        name: str = "",
        system_columns: Sequence[str] = (),
        declare: Callable[[pa.Field], pa.Field] | None = None,
        dictionaries: bool = False,
        narrow_decimals: bool = False,
        batch_rows: int | None = None,
        total_order: bool = False,
        added: AddedColumns | None = None,
    ) -> None:
        self.dataset = dataset
        self._scans: LruCache[_ScanKey, TableScan] = LruCache(_CACHED_SCANS)
        #: the same for each plan, as long as that exists
        self._filtered: WeakIdentityDict[FilterPlan, LruCache[_ScanKey, TableScan]] = WeakIdentityDict()
        self.name = (name or dataset.uri) if added is None else added.of
        self._batch_rows = batch_rows
        self._total_order = total_order
        own = dataset.storage_schema
        self.system_columns = tuple(column for column in system_columns if column not in own.names)
        fields = list(own)
        fields += [SYSTEM_FIELDS[column] for column in self.system_columns]
        #: columns that have the dictionary codes of others, by name; filters cannot refer to them
        self.added = {} if added is None else {column.name: column for column in added.coded}
        stored = fields
        if declare is not None:
            fields = [declare(field) for field in fields]
        more = [column.to_arrow() for column in self.added.values()]
        pairs = zip(stored, fields, strict=True)
        referred = [field if field.type == declared.type else declared for field, declared in pairs]
        #: the schema that filters refer to
        self.filter_schema = pa.schema([*referred, *more], metadata=own.metadata)
        #: string columns that are returned as dictionaries
        self.coded = (
            _small_dictionaries(dataset, batch_rows, dataset.storage_schema.names)
            if dictionaries
            else frozenset()
        )
        fields = [
            field.with_type(pa.dictionary(pa.int32(), field.type)) if field.name in self.coded else field
            for field in fields
        ]
        #: columns that are cast to another type than the dataset's
        self.converted = {
            field.name
            for field in fields
            if field.name not in SYSTEM_FIELDS
            and field.name not in self.coded
            and field.type != own.field(field.name).type
        }
        #: columns whose decimals are returned in 64 bits
        self.narrowed = frozenset(
            field.name
            for field in fields
            if narrow_decimals and field.name not in self.converted and _fits_64_bits(field.type)
        )
        fields = [self._delivered(field) for field in fields] + more
        self.schema = pa.schema(fields, metadata=own.metadata)

    def _delivered(self, field: pa.Field) -> pa.Field:
        if field.name in self.narrowed:
            return field.with_type(pa.decimal64(field.type.precision, field.type.scale))
        return field

    @property
    def coded_columns(self) -> tuple[str, ...]:
        """The columns of strings of which other columns have the dictionary codes."""
        return tuple(dict.fromkeys(column.source for column in self.added.values()))

    @property
    def num_rows(self) -> int:
        """Number of rows without deleted ones, from metadata."""
        return self.dataset.count_rows()

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        *,
        run: StatementRun | None,
        splits: Sequence[ScanSplit] | None = None,
        batch_size: int | None = None,
    ) -> TableScan:
        """A scan of the declared columns, registered in `run` if given; of all rows or those of `splits`."""
        names = self.schema.names if columns is None else columns
        if filter is not None and self._total_order:
            filter = self.filters.of_filter(filter)
        for plan in () if run is None else self._wanted(run):
            filter = self.filters.both(filter, plan)
        key = _ScanKey(tuple(names), None if splits is None else tuple(splits))
        if run is not None and filter is None and self.name in run.ranges:
            scan = self._new_scan(key, filter, batch_size, run.ranges[self.name])
        elif batch_size is not None:
            scan = self._new_scan(key, filter, batch_size)
        else:
            scan = self._known_scan(key, filter) or self._new_scan(key, filter)
        if run is not None:
            if self.name in run.expected:
                scan.scanner.expect(run.expected[self.name])
            scan.begin(run)
        return scan

    @cached_property
    def filters(self) -> TableFilters:
        """The conditions of its scans."""
        from lance_sql.engines.table_filters import TableFilters  # with the first filter

        return TableFilters(self.dataset.snapshot, self.filter_schema, total_order=self._total_order)

    def _known_scan(self, key: _ScanKey, filter: Any) -> TableScan | None:
        """A scan of rows that pass a plan; None where nothing is kept."""
        if filter is None:
            scans = self._scans
        else:
            from lance_engine.scan import FilterPlan

            if not isinstance(filter, FilterPlan):
                return None
            scans = self._filtered.computed(filter, partial(LruCache, _CACHED_SCANS))
        return scans.computed(key, partial(self._new_scan, key, filter)).again()

    def _new_scan(
        self, key: _ScanKey, filter: Any, batch_size: int | None = None, rows: range | None = None
    ) -> TableScan:
        added: Mapping[str, CodeColumn] = self.added
        scanner = self.dataset.scan(
            [added.get(name, name) for name in key.columns],
            filter,
            batch_size=batch_size or self._batch_rows,
            limit=None if rows is None else len(rows),
            offset=None if rows is None else rows.start,
            splits=key.splits,
            dictionaries=self.coded.intersection(key.columns),
        )
        return TableScan(self, scanner, key.splits)

    def _wanted(self, run: StatementRun) -> list[FilterPlan]:
        """The conditions for rows that a run needs."""
        plans = [] if run.join_keys is None else run.join_keys.plans(self.name, self.dataset)
        only = run.only.get(self.name, ())
        return plans + [self.filters.of_condition(condition) for condition in only]


def _fits_64_bits(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind) and kind.precision <= 18)


def _small_dictionaries(
    dataset: DatasetVersion, batch_rows: int | None, columns: Sequence[str]
) -> frozenset[str]:
    most = batch_rows and batch_rows // _ROWS_PER_ENTRY
    try:
        return frozenset(dataset.dictionary_columns(most, columns=columns))
    except LanceError:  # a damaged file: the scan itself will report it
        return frozenset()
