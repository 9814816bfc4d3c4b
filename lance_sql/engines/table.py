"""A Lance dataset as SQL engines see it: a declared schema, and scans that return exactly these types."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.types as at
from lance_engine.errors import LanceError, UnsupportedFeatureError
from lance_engine.expr.total_order import in_total_order
from lance_engine.owned import OwnedValues
from lance_engine.scan.stream import Convert, ScanStream
from lance_engine.scan.system import SYSTEM_FIELDS

from lance_sql.engines.statement_run import StatementRun

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from lance_engine.dataset import DatasetVersion
    from lance_engine.expr.tree import Node
    from lance_engine.scan.entry_columns import EntryColumn
    from lance_engine.scan.plan import FilterPlan
    from lance_engine.scan.scanner import Scanner
    from lance_engine.scan.splits import ScanSplit
    from lance_engine.scan.string_numbers import StringNumbers
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot


#: Number of scans of a table, and for each condition, that are kept for the next statement: of a few
#: statements, with one for each partition.
_KEPT_SCANS = 64
#: Number of expressions of an engine whose plans are kept, with the index results in them.
_KEPT_EXPRESSIONS = 8
#: Engines receive strings as dictionaries where a batch has at least this many rows per entry: each batch has
#: the whole dictionary of its page, which engines convert again and look values up in out of order.
_ROWS_PER_ENTRY = 4


class Parts(NamedTuple):
    """What replaces columns of the table that statements call `of`.

    `columns` lack some of their fields or members.

    `coded` and `mapped` add columns after all others. Each of `coded` is its name and that of a column of
    strings, whose numbers in the `StringNumbers` of the snapshot it has. Each of `mapped` is its name, that
    of a column of strings, a function as `MappedEntries` calls it, and the type of the array that it returns;
    for strings a `StringNumbers`, which gives their numbers.
    """

    of: str
    columns: tuple[Field, ...] = ()
    coded: tuple[tuple[str, str], ...] = ()
    mapped: tuple[tuple[str, str, Callable[[pa.Array], pa.Array], pa.DataType | StringNumbers], ...] = ()


def _added(snapshot: Snapshot, parts: Parts) -> dict[str, EntryColumn]:
    """The columns that `parts` add."""
    if not (parts.coded or parts.mapped):
        return {}
    # Most statements need none of this.
    from lance_engine.scan.entry_columns import EntryColumn, MappedEntries
    from lance_engine.scan.stored_entries import entries_of
    from lance_engine.scan.string_numbers import StringNumbers

    found = {}
    for name, source in parts.coded:
        numbers = StringNumbers.of(snapshot, source)
        if numbers is None:
            raise UnsupportedFeatureError("The strings of a column have no numbers", column=source)
        found[name] = EntryColumn(name, source, numbers)
    for name, source, function, kind in parts.mapped:
        entries = entries_of(snapshot, source)
        if entries is None:
            raise UnsupportedFeatureError("A column has too many distinct strings", column=source)
        large = snapshot.schema.field(source).logical_type == "large_string"
        if isinstance(kind, StringNumbers):
            values = MappedEntries(partial(_numbers, function, kind), pa.int32(), 2 * entries, large=large)
        else:
            values = MappedEntries(function, kind, 2 * entries, large=large)
        found[name] = EntryColumn(name, source, values)
    return found


def _numbers(function: Callable[[pa.Array], pa.Array], numbers: StringNumbers, strings: pa.Array) -> pa.Array:
    return numbers.numbers(function(strings))


class _ScanKey(NamedTuple):
    """The columns of a scan, and its ranges of rows, None for all rows."""

    columns: tuple[str, ...]
    splits: tuple[ScanSplit, ...] | None


class EngineTable:
    """`dataset` under the name that an engine uses for it.

    `system_columns` are declared after the data columns. `declare` maps a type that the engine cannot read to
    one that it can. `dictionaries` returns dictionary-encoded strings as such, unless they have too many
    entries for the size of a batch. `narrow_decimals` returns decimals of up to 18 digits in 64 bits.
    `batch_rows` is the maximum number of rows per batch. `total_order` is for engines that order NaN by its
    sign. `parts` replace whole columns, and add others.
    """

    def __init__(
        self,
        dataset: DatasetVersion,
        name: str = "",
        system_columns: Sequence[str] = (),
        declare: Callable[[pa.DataType], pa.DataType] | None = None,
        dictionaries: bool = False,
        narrow_decimals: bool = False,
        batch_rows: int | None = None,
        total_order: bool = False,
        parts: Parts | None = None,
    ) -> None:
        self.dataset = dataset
        self._scans: dict[_ScanKey, TableScan] = {}
        #: the same for each plan, as long as that exists
        self._filtered: OwnedValues[FilterPlan, dict[_ScanKey, TableScan]] = OwnedValues()
        #: the plans of expressions of an engine, by the pickled bytes of these; the newest last
        self._plans: dict[bytes, FilterPlan] = {}
        self.name = (name or dataset.uri) if parts is None else parts.of
        self._batch_rows = batch_rows
        self._total_order = total_order
        own = dataset.storage_schema
        self.system_columns = tuple(column for column in system_columns if column not in own.names)
        #: columns without some of their fields or members, by name
        self.parts = {part.name: part for part in parts.columns} if parts is not None else {}
        own = pa.schema(
            [self.parts[field.name].to_arrow() if field.name in self.parts else field for field in own],
            metadata=own.metadata,
        )
        fields = list(own)
        fields += [SYSTEM_FIELDS[column] for column in self.system_columns]
        #: columns that have what stands for strings of others, by name; filters cannot refer to them
        self.added = {} if parts is None else _added(dataset.snapshot, parts)
        #: the run for which functions of strings have been called
        self._called_for: weakref.ref[StatementRun] | None = None
        if declare is not None:
            fields = [field.with_type(declare(field.type)) for field in fields]
        added = [column.to_arrow() for column in self.added.values()]
        #: the schema that filters refer to
        self.filter_schema = pa.schema([*fields, *added], metadata=own.metadata)
        #: string columns that are returned as dictionaries
        self.coded = _small_dictionaries(dataset, batch_rows) if dictionaries else frozenset()
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
        #: columns that come as structs of parts of maps; filters cannot refer to them
        self.taken_apart = {part.name for part in self.parts.values() if part.members and not part.is_json}
        #: columns whose decimals are returned in 64 bits
        self.narrowed = frozenset(
            field.name
            for field in fields
            if narrow_decimals and field.name not in self.converted and _fits_64_bits(field.type)
        )
        fields = [self._delivered(field) for field in fields] + added
        self.schema = pa.schema(fields, metadata=own.metadata)

    def _delivered(self, field: pa.Field) -> pa.Field:
        if field.name in self.narrowed:
            return field.with_type(pa.decimal64(field.type.precision, field.type.scale))
        return field

    @property
    def sources_of_numbers(self) -> tuple[str, ...]:
        """The columns of strings of which other columns have the numbers."""
        lasting = (column.source for column in self.added.values() if column.entries.is_lasting)
        return tuple(dict.fromkeys(lasting))

    @property
    def computed(self) -> tuple[str, ...]:
        """The columns that have what functions make of strings."""
        return tuple(name for name, column in self.added.items() if not column.entries.is_lasting)

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
        if self._total_order and filter is not None:
            filter = self._plan_of(filter)
        for plan in () if run is None else self._wanted(run):
            filter = self._narrower(filter, plan)
        key = _ScanKey(tuple(names), None if splits is None else tuple(splits))
        if run is not None and filter is None and self.name in run.limits:
            scan = self._new_scan(key, filter, batch_size, limit=run.limits[self.name])
        elif batch_size is not None:
            scan = self._new_scan(key, filter, batch_size)
        else:
            scan = self._known_scan(key, filter) or self._new_scan(key, filter)
        if run is not None:
            if self.name in run.expected:
                scan.scanner.expect(run.expected[self.name])
            self._forget_others(run)
            scan.begin(run)
        return scan

    def counts_in(self, run: StatementRun) -> bool:
        """Whether a run does not use the first column, so that a scan of nothing else only counts rows."""
        gives_keys = run.join_keys is not None and self.name in run.join_keys.givers
        return self.name in run.counted and not gives_keys

    def _forget_others(self, run: StatementRun) -> None:
        """Each run calls the functions of strings itself."""
        if not self.computed or (self._called_for is not None and self._called_for() is run):
            return
        from lance_engine.scan.entry_columns import MappedEntries

        self._called_for = weakref.ref(run)
        for column in self.added.values():
            if isinstance(column.entries, MappedEntries):
                column.entries.forget()

    def _plan_of(self, filter: pc.Expression) -> FilterPlan:
        """The plan of an expression: an engine passes it when it plans, and again for each partition."""
        # imported with the first filter
        from lance_engine.expr.from_arrow import from_arrow, pickled

        key = pickled(filter).to_pybytes()
        found = self._plans.get(key)
        if found is None:
            from lance_engine.scan.plan import FilterPlan

            found = FilterPlan(in_total_order(from_arrow(filter, self.filter_schema)), self.dataset.snapshot)
            others = islice(self._plans.items(), max(0, len(self._plans) - _KEPT_EXPRESSIONS + 1), None)
            self._plans = {**dict(others), key: found}
        return found

    def _known_scan(self, key: _ScanKey, filter: Any) -> TableScan | None:
        """A scan of rows that pass a plan; None where nothing is kept."""
        if filter is None:
            scans = self._scans
        else:
            from lance_engine.scan.plan import FilterPlan

            if not isinstance(filter, FilterPlan):
                return None
            scans = self._filtered.setdefault(filter, {})
        found = scans.get(key)
        if found is None:
            found = self._new_scan(key, filter)
            if len(scans) >= _KEPT_SCANS:
                scans.clear()
            scans[key] = found
        return found.again()

    def _new_scan(
        self, key: _ScanKey, filter: Any, batch_size: int | None = None, limit: int | None = None
    ) -> TableScan:
        others: dict[str, Field | EntryColumn] = {**self.parts, **self.added}
        scanner = self.dataset.scan(
            [others.get(name, name) for name in key.columns],
            filter,
            batch_size=batch_size or self._batch_rows,
            limit=limit,
            splits=key.splits,
            dictionaries=self.coded.intersection(key.columns),
        )
        return TableScan(self, scanner, key.splits)

    def _wanted(self, run: StatementRun) -> list[FilterPlan]:
        """The conditions for rows that a run needs."""
        found = [] if run.join_keys is None else run.join_keys.plans(self.name, self.dataset)
        only = run.only.get(self.name, ())
        return found + [self._plan(condition) for condition in only]

    def _plan(self, condition: Node | FilterPlan) -> FilterPlan:
        from lance_engine.scan.plan import FilterPlan

        if not isinstance(condition, FilterPlan):
            return FilterPlan(condition, self.dataset.snapshot)
        if condition.snapshot is self.dataset.snapshot:
            return condition
        return FilterPlan(condition.filter, self.dataset.snapshot)  # of another version

    def _narrower(self, filter: Any, narrow: FilterPlan) -> FilterPlan:
        """The conjunction of `filter`, of an engine, and `narrow`."""
        from lance_engine.scan.plan import FilterPlan
        from lance_engine.scan.scanner import parse_filter

        snapshot = self.dataset.snapshot
        if isinstance(filter, FilterPlan):
            return narrow.joined((filter,), partial(_conjunction, snapshot, filter, narrow))
        tree = parse_filter(filter, snapshot)
        return narrow if tree is None else _conjunction(snapshot, FilterPlan(tree, snapshot), narrow)


def _conjunction(snapshot: Snapshot, filter: FilterPlan, narrow: FilterPlan) -> FilterPlan:
    from lance_engine.expr.build import conjunction
    from lance_engine.expr.tree import Column, Comparison, In, IsNull, Literal, conjuncts
    from lance_engine.scan.plan import FilterPlan

    # Rows that pass a comparison of a column with a constant are not null there; kernels test this once.
    compared = {
        child
        for node in conjuncts(narrow.filter)
        if isinstance(node, Comparison | In)
        and all(isinstance(child, Column | Literal) for child in node.children)
        for child in node.children
        if isinstance(child, Column)
    }
    others = [
        node
        for node in conjuncts(filter.filter)
        if not (isinstance(node, IsNull) and node.negated and node.operand in compared)
    ]
    if not others:
        return narrow
    return FilterPlan(conjunction([*others, narrow.filter]), snapshot, parts=[filter, narrow])


class TableScan:
    """A scan of a table in the declared types; its errors are reported to `run`."""

    def __init__(
        self,
        table: EngineTable,
        scanner: Scanner,
        splits: Sequence[ScanSplit] | None = None,
    ) -> None:
        self.scanner = scanner
        self._table = table
        self._name = table.name
        self._splits = splits
        self._run: StatementRun | None = None
        #: whether each batch is one column of nulls
        self._nulls = False
        self.schema = pa.schema([table.schema.field(name) for name in scanner.schema.names])
        self._cast = not table.converted.isdisjoint(self.schema.names)
        self._narrowed = table.narrowed.intersection(self.schema.names)

    def again(self) -> TableScan:
        """The same scan with metrics of its own, for another run."""
        from lance_engine.scan.scanner import repeated

        found = copy.copy(self)
        found.scanner = repeated(self.scanner)
        return found

    def counting(self, name: str) -> TableScan:
        """The same scan of no columns, with nulls in place of the column `name`."""
        found = copy.copy(self)
        found.schema = pa.schema([self._table.schema.field(name).with_nullable(True)])
        found._nulls = True
        return found

    def begin(self, run: StatementRun) -> None:
        """The scan belongs to `run`."""
        self._run = run
        run.began(self._name, self.scanner)

    def stream(self) -> ScanStream:
        """The rows; each call reads them again."""
        schema, run = self.schema, self._run
        convert: Convert | None = (lambda batch: batch.cast(schema)) if self._cast else None
        if self._nulls:
            convert = partial(_nulls, schema)
        failed = None if run is None else run.failed
        keys = None if run is None or run.join_keys is None else run.join_keys
        collector = None if keys is None else keys.collector(self._name, self.scanner, self._splits)
        if collector is not None:
            from lance_sql.engines.join_keys import CollectingStream

            return CollectingStream(collector, self.scanner, schema, convert, failed)
        narrowed = () if self._cast else self._narrowed
        return ScanStream(self.scanner, schema, convert, failed, narrowed)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, until the run is cancelled."""
        for batch in self.stream().batches():
            if self._run is not None:
                self._run.check()
            yield from_the_start(batch)

    def count(self) -> int:
        return self.scanner.count()


def _nulls(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """As many nulls as a batch has rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows, schema.field(0).type)], schema=schema)


def from_the_start(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` without sliced structs of structs, which DataFusion cannot import."""
    if not any(_is_struct_of_structs(kind) for kind in batch.schema.types):
        return batch
    arrays = [
        pa.concat_arrays([array, array.slice(0, 0)]) if array.offset and at.is_struct(array.type) else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _is_struct_of_structs(kind: pa.DataType) -> bool:
    return bool(at.is_struct(kind) and any(at.is_struct(field.type) for field in kind))


def _fits_64_bits(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(kind) and kind.precision <= 18)


def _small_dictionaries(dataset: DatasetVersion, batch_rows: int | None) -> frozenset[str]:
    try:
        return frozenset(dataset.dictionary_columns(batch_rows and batch_rows // _ROWS_PER_ENTRY))
    except LanceError:  # a damaged file: the scan itself will report it
        return frozenset()
