"""Queries that only compare strings, over a table that also has numbers that stand for them.

They group by numbers and count these, and the rows of the result get their strings back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from lance_engine.owned import OwnedValues
from lance_engine.recent import Recent
from lance_engine.scan.string_numbers import StringNumbers

from lance_sql.engines.parts import Parts
from lance_sql.text.tokens import quote

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import PlannedQuery
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.text.grouped_keys import GroupedKeys, Uses
    from lance_sql.text.statement import Statement

#: Fewer rows are grouped in the time that planning a query again takes.
_LEAST_ROWS: Final = 100_000
#: The same of tables with a condition, which leaves fewer.
_LEAST_FILTERED_ROWS: Final = 400_000
#: Number of texts over a dataset of which the keys are kept.
_KEPT_TEXTS: Final = 32


class NumberedColumn(NamedTuple):
    """A column `extra` of the table with `numbers` of the strings of the column `name`, and its uses."""

    name: str
    extra: str
    uses: Uses
    numbers: StringNumbers


class NumberedKeys(NamedTuple):
    """The columns of a table of which a statement only compares values."""

    table: str
    keys: GroupedKeys
    columns: tuple[NumberedColumn, ...]

    def parts(self) -> Parts:
        """The additional columns of the table."""
        return Parts(self.table, coded=tuple((column.extra, column.name) for column in self.columns))


class NumberedStatement(NamedTuple):
    """A statement that only compares columns of `tables`."""

    original: str
    tables: tuple[NumberedKeys, ...]

    @property
    def columns(self) -> Iterator[NumberedColumn]:
        """The columns of all tables."""
        return (column for keys in self.tables for column in keys.columns)

    def text(self, others: Sequence[str], names: Sequence[str]) -> str | None:
        """The statement over other tables, whose result has columns of these names; None if uncertain."""
        items = self.tables[0].keys.items
        if len(names) != len(items):
            return None
        places = [keys.keys.table for keys in self.tables]
        replaced = [
            (place.start, place.end, place.instead(other))
            for place, other in zip(places, others, strict=True)
        ]
        changed: set[int] = set()
        for column in self.columns:
            replaced += [(start, end, quote(column.extra)) for start, end in column.uses.places]
            changed.update(column.uses.changed)
        for position in changed:
            item = items[position]
            if not item.is_named:
                replaced.append((item.end, item.end, f" AS {quote(names[position])}"))
        pieces, place = [], 0
        for begin, end, new in sorted(replaced):
            pieces += [self.original[place:begin], new]
            place = end
        return "".join([*pieces, self.original[place:]])

    def fits(self, numbered: PlannedQuery, plain: PlannedQuery) -> bool:
        """Whether a query differs from the plain one only in having numbers in place of strings."""
        ours, theirs = numbered.columns(), plain.columns()
        if [name for name, _ in ours] != [name for name, _ in theirs]:
            return False
        shown = {position for column in self.columns for position in column.uses.shown}
        return all(
            mine == other if position not in shown else mine in _NUMBERS and other in _STRINGS
            for position, ((_, mine), (_, other)) in enumerate(zip(ours, theirs, strict=True))
        )


#: Queries without any of these words need all strings.
_COMPARING: Final = {"GROUP", "DISTINCT"}
#: The names that engines have for the types of numbers and strings.
_NUMBERS: Final = ("INTEGER", "UTINYINT", "int32", "uint8")
_STRINGS: Final = ("VARCHAR", "string", "large_string")


class KnownKeys:
    """The keys of statements, kept with the dataset for statements that run again.

    `groups_by_codes`: see `Capabilities`.
    """

    def __init__(self, groups_by_codes: bool) -> None:
        self._groups_by_codes = groups_by_codes
        self._known: OwnedValues[DatasetVersion, Recent[Any, NumberedKeys | None]] = OwnedValues()

    def of(
        self, statement: Statement, datasets: Mapping[str, DatasetVersion], force: bool
    ) -> NumberedStatement | None:
        """The keys of a statement over datasets, if numbers pay; None if not."""
        tables = []
        for table, dataset in datasets.items():
            known = self._known.computed(dataset, partial(Recent, _KEPT_TEXTS))
            found = partial(numbered_keys, statement, table, datasets, self._groups_by_codes, force)
            keys = known.computed((force, *_place(statement, table, datasets)), found)
            if keys is not None:
                tables.append(keys)
        return NumberedStatement(statement.original, tuple(tables)) if tables else None

    def refuse(self, statement: Statement, datasets: Mapping[str, DatasetVersion], force: bool) -> None:
        """The statement cannot be changed so, although its text looked like it."""
        for table, dataset in datasets.items():
            known = self._known.computed(dataset, partial(Recent, _KEPT_TEXTS))
            known[force, *_place(statement, table, datasets)] = None


#: A text, a table, and the columns of the others by name.
_Place = tuple[str, str, tuple[tuple[str, tuple[str, ...]], ...]]


def _place(statement: Statement, table: str, datasets: Mapping[str, DatasetVersion]) -> _Place:
    others = (item for item in datasets.items() if item[0] != table)
    return (
        statement.original,
        table,
        tuple((name, tuple(other.storage_schema.names)) for name, other in others),
    )


class NumberedQuery:
    """A query over numbers whose result has strings; unless it `is_valid` when it runs, `plain` runs."""

    def __init__(
        self,
        numbered: PlannedQuery,
        plain: PlannedQuery,
        keys: NumberedStatement,
        is_valid: Callable[[], bool],
    ) -> None:
        self._numbered = numbered
        self._plain = plain
        self._keys = keys
        self._is_valid = is_valid

    @property
    def scans(self) -> Mapping[str, int]:
        return self._numbered.scans

    def columns(self) -> list[tuple[str, str]]:
        return self._plain.columns()

    def schema(self) -> pa.Schema:
        return self._plain.schema()

    def kinds(self) -> Sequence[Any]:
        return self._plain.kinds()

    def to_table(self, run: StatementRun) -> pa.Table:
        strings = self._strings()
        if strings is None:
            return self._plain.to_table(run)
        table = self._numbered.to_table(run)
        columns = list(table.columns)
        for position, (numbers, kind) in strings.items():
            found = [_as_strings(chunk, numbers, kind) for chunk in columns[position].chunks]
            columns[position] = pa.chunked_array(found, kind)
        return pa.Table.from_arrays(columns, schema=_with_strings(table.schema, strings))

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        strings = self._strings()
        if strings is None:
            return self._plain.stream(run)
        schema, batches = self._numbered.stream(run)
        schema = _with_strings(schema, strings)
        return schema, _batches_with_strings(batches, schema, strings)

    def _strings(self) -> _Strings | None:
        """What the strings of the result are made of; None if the plain query has to run."""
        if not self._is_valid():
            return None
        # A setting may have changed the type since.
        kinds = self.schema().types
        return {
            position: (column.numbers, kinds[position])
            for column in self._keys.columns
            for position in column.uses.shown
        }


#: By the position of a column in the result, the numbers of its strings, and their type.
_Strings = dict[int, tuple[StringNumbers, pa.DataType]]


def _with_strings(schema: pa.Schema, strings: _Strings) -> pa.Schema:
    for position, (_, kind) in strings.items():
        schema = schema.set(position, schema.field(position).with_type(kind))
    return schema


def _batches_with_strings(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, strings: _Strings
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        arrays = list(batch.columns)
        for position, (numbers, kind) in strings.items():
            arrays[position] = _as_strings(arrays[position], numbers, kind)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_strings(array: pa.Array, numbers: StringNumbers, kind: pa.DataType) -> pa.Array:
    found = numbers.strings(array)
    return found if found.type == kind else found.cast(kind)


def numbered_keys(
    statement: Statement,
    table: str,
    datasets: Mapping[str, DatasetVersion],
    groups_by_codes: bool,
    force: bool,
) -> NumberedKeys | None:
    """The strings of a table that a statement over datasets only compares, if numbers pay; None if not."""
    words = {token.upper for token in statement.tokens}
    dataset = datasets[table]
    is_join = len(datasets) > 1
    rows = max(other.count_rows() for other in datasets.values())
    least = 0 if force else _LEAST_FILTERED_ROWS if is_join else _LEAST_ROWS
    if words.isdisjoint(_COMPARING) or rows < least:
        return None
    schema = dataset.storage_schema
    names = {name.lower(): name for name in schema.names}
    if len(names) < len(schema.names):
        return None
    strings = [name for name, own in names.items() if _is_string(schema.field(own).type)]
    from lance_sql.text.grouped_keys import grouped_keys

    others = {
        name: [column.lower() for column in other.storage_schema.names]
        for name, other in datasets.items()
        if name != table
    }
    keys = grouped_keys(statement.tokens, table, names, strings, others=others)
    if keys is None:
        return None
    if keys.is_filtered and not force and rows < _LEAST_FILTERED_ROWS:
        return None
    columns = []
    for key, uses in keys.columns.items():
        numbers = StringNumbers.of(dataset.snapshot, names[key])
        if numbers is None or (not force and groups_by_codes and _is_one_dictionary(numbers, keys, uses)):
            continue
        # Numbers of strings that are all known ascend with these.
        if numbers.known is not None or not uses.orders:
            columns.append(NumberedColumn(names[key], _unused(f"number of {key}", names), uses, numbers))
    return NumberedKeys(table, keys, tuple(columns)) if columns else None


def _is_one_dictionary(numbers: StringNumbers, keys: GroupedKeys, uses: Uses) -> bool:
    """Whether a query only compares the few strings of a column with one another."""
    return numbers.known is not None and (keys.keys < 2 or (uses.counted and not uses.shown))


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _unused(name: str, names: Collection[str]) -> str:
    """A name that no column has."""
    while name in names:
        name += "_"
    return name
