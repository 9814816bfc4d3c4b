"""Queries that only compare strings of a dataset run over their dictionary codes, which engines group faster.

This is the only rule that replaces expressions in the text: each is a bound column, and what takes its place
is an additional column of the table with a code for each value. The rows of the result get their strings
back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from lance_engine.errors import LanceError
from lance_engine.scan import CodeColumn, DictionaryCodes

from lance_sql.engines.added_columns import AddedColumns
from lance_sql.pushdown.coded_tables import CodedTables
from lance_sql.pushdown.rule import Asked
from lance_sql.text.tokens import quote
from lance_sql.types.table import names_of

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import Engine, PlannedQuery, Query
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.pushdown.compared_columns import ComparedColumns, Uses
    from lance_sql.syntax.scopes import BoundQuery

#: Fewer rows are grouped in the time that planning a query again takes.
_LEAST_ROWS: Final = 100_000
#: The same of tables with a condition, which leaves fewer.
_LEAST_FILTERED_ROWS: Final = 400_000
#: The names that engines have for the types of codes and strings.
_CODES: Final = names_of(pa.int32(), pa.uint8())
_STRINGS: Final = names_of(pa.string(), pa.large_string())


class CodedColumn(NamedTuple):
    """The column `extra` of the table has codes of the strings of the column `name`."""

    name: str
    extra: str
    uses: Uses
    codes: DictionaryCodes


class CodedStatement(NamedTuple):
    """A statement that only compares some columns of strings."""

    compared: ComparedColumns
    columns: tuple[CodedColumn, ...]

    def added(self) -> AddedColumns:
        """The additional columns of the table."""
        return AddedColumns(
            self.compared.table,
            tuple(CodeColumn(column.extra, column.name, column.codes) for column in self.columns),
        )

    def text(self, original: str, table: str) -> str:
        """The statement over a table with the additional columns."""
        alias = f" AS {quote(self.compared.alias)}" if self.compared.alias else ""
        edits = [(*self.compared.place, quote(table) + alias)]
        for column in self.columns:
            edits += [(start, end, quote(column.extra)) for start, end in column.uses.places]
        pieces, place = [], 0
        for start, end, new in sorted(edits):
            pieces += [original[place:start], new]
            place = end
        return "".join([*pieces, original[place:]])

    def fits(self, coded: PlannedQuery, plain: PlannedQuery) -> bool:
        """Whether a query differs from the plain one only in having codes in place of strings."""
        ours, theirs = ([kind for _, kind in query.columns()] for query in (coded, plain))
        shown = {position for column in self.columns for position in column.uses.shown}
        return len(ours) == len(theirs) and all(
            mine == other if position not in shown else mine in _CODES and other in _STRINGS
            for position, (mine, other) in enumerate(zip(ours, theirs, strict=True))
        )


class DictionaryKeys:
    """The rule."""

    name = "dictionary_keys"
    words = (frozenset({"GROUP", "DISTINCT"}),)

    def __init__(self, engine: Engine) -> None:
        self.tables = CodedTables(engine)

    def hindrance(self, engine: Engine) -> str:
        if not engine.capabilities.groups_by_numbers:
            return f"{engine.capabilities.name} groups by strings as fast"
        return "" if engine.compares_bytes() else "a collation is set"

    def applied(self, asked: Asked, query: Query | None = None) -> CodedQuery | None:
        """A query over codes; pass its `table` to `release` when it cannot run any more."""
        plan = asked.plan
        if not asked.engine.capabilities.groups_by_numbers or len(plan.datasets) != 1:
            return None
        ((table, dataset),) = plan.datasets.items()
        if not asked.force and dataset.count_rows() < _LEAST_ROWS:
            return None
        bound = asked.bound(self)
        statement = (
            None if bound is None else plan.fact(self.name, lambda: self._found(bound, asked, dataset))
        )
        # Views and other names may hide which tables are scanned.
        if statement is None or asked.planned().scans.get(table) != 1:
            return None
        other = self.tables.table(dataset, statement.added(), plan.statement.system_columns)
        text = statement.text(plan.statement.original, other)
        coded = self._planned(asked, text)
        plain = asked.planned()
        if coded is None or not statement.fits(coded, plain):
            plan.note(self.name, None)
            return None
        self.tables.use(other)
        return CodedQuery(coded, plain, statement, asked.engine.compares_bytes, text, other)

    def described(self, asked: Asked) -> str | None:
        return None  # the scan says so

    def _found(self, query: BoundQuery, asked: Asked, dataset: DatasetVersion) -> CodedStatement | None:
        from lance_sql.pushdown.compared_columns import compared_columns

        schema = dataset.storage_schema
        compared = compared_columns(query, [field.name for field in schema if _is_string(field.type)])
        if compared is None:
            return None
        if compared.is_filtered and not asked.force and dataset.count_rows() < _LEAST_FILTERED_ROWS:
            return None
        columns = []
        by_codes = asked.engine.capabilities.groups_by_codes and not asked.force
        for name, uses in compared.columns.items():
            codes = DictionaryCodes.of(dataset.snapshot, name)
            if codes is None or (by_codes and _is_one_dictionary(codes, compared, uses)):
                continue
            # Codes of strings that are all known ascend with these.
            if codes.known is not None or not uses.orders:
                extra = _unused(f"code of {name}", schema.names)
                columns.append(CodedColumn(name, extra, uses, codes))
        return CodedStatement(compared, tuple(columns)) if columns else None

    def _planned(self, asked: Asked, text: str) -> PlannedQuery | None:
        """The query of a text over another table, None if it needs the columns unchanged."""
        try:
            return asked.engine_query(text)
        except LanceError:
            return None


#: By the position of a column in the result, the codes of its strings, and their type.
_Strings = dict[int, tuple[DictionaryCodes, pa.DataType]]


class CodedQuery:
    """A query over codes whose result has strings; unless it `is_valid` when it runs, `plain` runs.

    `text` is what the engine runs, over the registered `table`.
    """

    def __init__(
        self,
        coded: PlannedQuery,
        plain: PlannedQuery,
        statement: CodedStatement,
        is_valid: Callable[[], bool],
        text: str,
        table: str,
    ) -> None:
        self._coded = coded
        self._plain = plain
        self._found = statement
        self._is_valid = is_valid
        self.text = text
        self.table = table

    @property
    def scans(self) -> Mapping[str, int]:
        return self._coded.scans

    def columns(self) -> list[tuple[str, str]]:
        return self._plain.columns()

    def schema(self) -> pa.Schema:
        return self._plain.schema()

    def kinds(self) -> Sequence[Any]:
        return self._plain.kinds()

    def to_table(self, run: StatementRun) -> pa.Table:
        if not self._is_valid():
            return self._plain.to_table(run)
        table, strings = self._coded.to_table(run), self._strings()
        columns = [
            _as_strings(column, *strings[position]) if position in strings else column
            for position, column in enumerate(table.columns)
        ]
        return pa.Table.from_arrays(columns, schema=self._with_strings(table.schema, strings))

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        if not self._is_valid():
            return self._plain.stream(run)
        coded, batches = self._coded.stream(run)
        strings = self._strings()
        schema = self._with_strings(coded, strings)
        return schema, _batches_with_strings(batches, schema, strings)

    def _strings(self) -> _Strings:
        """What the strings of the result are made of."""
        kinds = self.schema().types  # a setting may have changed them since
        return {
            position: (column.codes, kinds[position])
            for column in self._found.columns
            for position in column.uses.shown
        }

    def _with_strings(self, schema: pa.Schema, strings: _Strings) -> pa.Schema:
        fields = [field.with_name(name) for field, (name, _) in zip(schema, self.columns(), strict=True)]
        for position, (_, kind) in strings.items():
            fields[position] = fields[position].with_type(kind)
        return pa.schema(fields, metadata=schema.metadata)


def _batches_with_strings(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, strings: _Strings
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        arrays = [
            _as_strings(array, *strings[position]) if position in strings else array
            for position, array in enumerate(batch.columns)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_strings(array: Any, codes: DictionaryCodes, kind: pa.DataType) -> Any:
    strings = codes.strings(array)
    return strings if strings.type == kind else strings.cast(kind)


def _is_one_dictionary(codes: DictionaryCodes, compared: ComparedColumns, uses: Uses) -> bool:
    """Whether a query only compares the few strings of a column with one another."""
    return codes.known is not None and (compared.keys < 2 or (uses.counted and not uses.shown))


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _unused(name: str, names: Sequence[str]) -> str:
    """A name that no column has."""
    while name.lower() in map(str.lower, names):
        name += "_"
    return name
