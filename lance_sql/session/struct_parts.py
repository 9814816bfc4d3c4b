"""Queries that use a few fields of a struct or members of JSON documents, over a table without the others.

Engines read whole columns. So if the text of a query uses only some fields of a struct, the engine gets the
same dataset under another name, with just these fields in the struct: the others are never read. Likewise,
JSON documents come with just the members that a query uses: the others need not become text and be parsed.
Maps become structs of the values of the keys that a query names, for engines that compare all keys of a map.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from lance_engine.errors import LanceError
from lance_engine.scan.paths import with_fields
from lance_engine.scan.width import estimated_row_bytes

from lance_sql.engines.parts import Parts
from lance_sql.session.lone_fields import LoneFields, lone_fields
from lance_sql.session.numbered_keys import Functions, KnownKeys, NumberedQuery, NumberedStatement
from lance_sql.session.renamed_query import RenamedQuery
from lance_sql.text.json_members import member_path
from lance_sql.text.map_parts import MapCall, map_calls, map_part
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import table_positions
from lance_sql.text.used_fields import FindPath, UsedFields, field_path, used_fields

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.schema_tree import Field

    from lance_sql.catalog.binding import Bound
    from lance_sql.engines.base import Engine, Parameters, PlannedQuery
    from lance_sql.text.tokens import Token

#: Smaller savings are not worth planning a query again.
_LEAST_BYTES: Final = 256 << 10
#: Logical types of columns of which queries may use parts.
_WITH_PARTS: Final = ("struct", "json", "map")
#: What reading only parts of a JSON document or a map is worth.
_SAVED_BYTES: Final = 64
#: Number of unused tables that are kept for later statements.
_KEPT_TABLES: Final = 8

_numbers = itertools.count()
#: Fields of a dataset, and the system columns of the table.
_Key = tuple[int, Parts, tuple[str, ...]]


class QueryOfParts(NamedTuple):
    """A text over tables with partial columns, as a query, and the names of these tables."""

    text: str
    query: PlannedQuery
    tables: list[str]


class PartTables:
    """Tables of a session with partial columns, which are shared by queries that use the same parts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known_keys = KnownKeys(engine.capabilities.groups_by_codes)
        #: the newest last; a dataset is kept so that its id stays unique
        self._tables: OrderedDict[_Key, tuple[str, DatasetVersion]] = OrderedDict()
        #: number of results that may still scan a table, by its name
        self._users: dict[str, int] = {}

    def names(self) -> set[str]:
        """The names under which they are registered with the engine."""
        return {name for name, _ in self._tables.values()}

    def instead(
        self, statement: Statement, bound: Bound, planned: Callable[[], PlannedQuery], parameters: Parameters
    ) -> QueryOfParts | None:
        """A query equivalent to `planned`; None if it would read no less, and for other statements.

        Pass its tables to `release` when it cannot run any more.
        """
        found = self._with_numbers(statement, bound, planned, parameters)
        if found is None:
            found = self._without_fields(statement, bound, planned, parameters)
        if found is not None:
            for name in found.tables:
                self._users[name] = self._users.get(name, 0) + 1
        return found

    def _without_fields(
        self, statement: Statement, bound: Bound, planned: Callable[[], PlannedQuery], parameters: Parameters
    ) -> QueryOfParts | None:
        """The query over tables without unused parts."""
        datasets = {name: dataset for name, dataset in bound.datasets.items() if _has_parts(dataset)}
        if not datasets:
            return None
        read = statement if bound.text == statement.original else Statement(bound.text)
        columns = self._columns_with_parts(datasets.values())
        used = used_fields(read.tokens, datasets, columns)
        if used is None:
            return None
        scans = planned().scans
        # Views and other names may hide which tables are scanned.
        certain = {name for name, places in used.places.items() if scans.get(name) == len(places)}
        lone = {name: found for name in certain if (found := lone_fields(read, name, datasets[name], used))}
        for fields in [lone, {}] if lone else [{}]:
            query = self._over_parts(read, datasets, used, certain, fields, statement, planned(), parameters)
            if query is not None:
                return query
        return None

    def _over_parts(
        self,
        read: Statement,
        datasets: Mapping[str, DatasetVersion],
        used: UsedFields,
        tables: Iterable[str],
        lone: Mapping[str, LoneFields],
        statement: Statement,
        plain: PlannedQuery,
        parameters: Parameters,
    ) -> QueryOfParts | None:
        """The query over `tables` without unused parts, with `lone` fields of some as columns."""
        parts = {}
        for name in tables:
            fields = lone.get(name)
            narrower = _parts(datasets[name], used, fields)
            if narrower or fields is not None:
                parts[name] = Parts(name, narrower, () if fields is None else fields.paths)
        if not parts:
            return None
        calls = _calls(read.tokens, [field for found in parts.values() for field in found.columns])
        if calls is None:
            return None
        edits = [*calls, *(edit for found in lone.values() for edit in found.edits)]
        names = {
            name: self._table(datasets[name], found, statement.system_columns)
            for name, found in parts.items()
        }
        text = _text(read.original, used, names, edits)
        query = self._planned(text, parameters)
        if query is not None and edits and _types(query) == _types(plain):
            query = RenamedQuery(query, plain)
        if query is None or query.columns() != plain.columns():
            return None
        return QueryOfParts(text, query, list(names.values()))

    def _columns_with_parts(self, datasets: Iterable[DatasetVersion]) -> dict[str, FindPath]:
        """How to find what a text uses of the columns that have parts, by lower-case name."""
        kinds: dict[str, set[str]] = {}
        for dataset in datasets:
            for field in dataset.snapshot.schema.fields:
                kinds.setdefault(field.name.lower(), set()).add(field.logical_type)
        standard = self._engine.functions_are_standard()
        finders: dict[str, FindPath] = {
            "struct": field_path,
            "json": partial(member_path, functions=standard),
        }
        if self._engine.capabilities.compares_map_keys and self._engine.compares_bytes():
            finders["map"] = partial(map_part, functions=standard)
        return {
            name: finders[kind]
            for name, found in kinds.items()
            if len(with_parts := found & finders.keys()) == 1
            for kind in with_parts
        }

    def _with_numbers(
        self, statement: Statement, bound: Bound, planned: Callable[[], PlannedQuery], parameters: Parameters
    ) -> QueryOfParts | None:
        """The query over tables with numbers for strings that it only compares, if that pays."""
        datasets = bound.datasets
        if not datasets or not self._engine.capabilities.groups_by_numbers:
            return None
        read = statement if bound.text == statement.original else Statement(bound.text)
        functions = Functions(
            self._engine.entry_function, partial(self._rows_left, read.original, parameters)
        )
        while (keys := self._known_keys.of(read, datasets, functions)) is not None:
            is_valid = partial(self._means_the_same, keys)
            # Views and other names may hide which tables are scanned.
            scans = planned().scans
            if any(scans.get(own.table) != 1 for own in keys.tables) or not is_valid():
                return None
            tables = [
                self._table(datasets[own.table], own.parts(), statement.system_columns) for own in keys.tables
            ]
            text = keys.text(tables, [name for name, _ in planned().columns()])
            query = None if text is None else self._planned(text, parameters)
            if text is not None and query is not None and keys.fits(query, planned()):
                return QueryOfParts(text, NumberedQuery(query, planned(), keys, is_valid), tables)
            self._known_keys.refuse(read, datasets)
        return None

    def _means_the_same(self, keys: NumberedStatement) -> bool:
        """Whether settings and functions of the session do not matter to a statement over numbers."""
        engine = self._engine
        return engine.compares_bytes() and (not keys.calls_functions or engine.functions_are_standard())

    def _rows_left(self, text: str, parameters: Parameters) -> float:
        """The estimated number of rows that the scan of a statement over one table leaves."""
        plan = self._engine.explain(text, parameters, self._engine.begin(), analyze=False)
        left = 0.0
        for scan in plan.scans:
            share = math.prod(decision.share for decision in scan.decisions if decision.pushed)
            rows = 0 if scan.scanner is None else scan.scanner.look_ahead().rows_left
            left += min(rows, scan.dataset.count_rows() * share)
        return left

    def _planned(self, text: str, parameters: Parameters) -> PlannedQuery | None:
        """The query of a text over other tables, None if it needs the columns unchanged."""
        try:
            return self._engine.query(text, parameters)
        except LanceError:
            return None

    def release(self, names: list[str]) -> None:
        """Called when a query that scanned these tables is released."""
        for name in names:
            self._users[name] -= 1

    def _table(self, dataset: DatasetVersion, parts: Parts, system_columns: tuple[str, ...]) -> str:
        key = (id(dataset), parts, system_columns)
        known = self._tables.get(key)
        if known is not None:
            self._tables.move_to_end(key)
            return known[0]
        self._forget(lambda key: key[0] != id(dataset) and key[1].of == parts.of, 0)
        self._forget(lambda _: True, _KEPT_TABLES - 1)
        name = f"lance_parts_{next(_numbers)}"
        self._engine.register(name, dataset, system_columns, parts)
        self._tables[key] = name, dataset
        return name

    def _forget(self, chosen: Callable[[_Key], bool], kept: int) -> None:
        """Forget the oldest of some tables that are not in use, but for so many."""
        unused = [key for key, (name, _) in self._tables.items() if chosen(key) and not self._users.get(name)]
        for key in unused[: max(0, len(unused) - kept)]:
            name, _ = self._tables.pop(key)
            self._users.pop(name, None)
            self._engine.unregister(name)


def _has_parts(dataset: DatasetVersion) -> bool:
    return any(field.logical_type in _WITH_PARTS for field in dataset.snapshot.schema.fields)


def _parts(dataset: DatasetVersion, used: UsedFields, lone: LoneFields | None) -> tuple[Field, ...]:
    """Columns without their unused parts, if that saves anything, but for those of `lone`."""
    return tuple(_saving(dataset, used, frozenset() if lone is None else lone.columns))


def _saving(dataset: DatasetVersion, used: UsedFields, unused: Collection[str]) -> Iterator[Field]:
    names = [field.name.lower() for field in dataset.snapshot.schema.fields]
    for field in dataset.snapshot.schema.fields:
        paths = used.paths.get(field.name.lower())
        if paths is None or names.count(field.name.lower()) > 1 or field.name.lower() in unused:
            continue
        if field.logical_type not in _WITH_PARTS:
            continue
        part = with_fields(field, paths)
        if part is None or not _are_distinct(part):
            continue
        saved = _SAVED_BYTES if part.members else _width(field) - _width(part)
        if dataset.count_rows() * saved >= _LEAST_BYTES:
            yield part


def _are_distinct(part: Field) -> bool:
    """Whether engines distinguish the parts of a map, as fields of a struct; keys of maps are."""
    if part.logical_type != "map":
        return True
    names = [name for name, *_ in part.members]
    keys = pa.types.is_string(part.whole.arrow_type.key_type)
    return keys and len({name.lower() for name in names}) == len(names)


def _calls(tokens: list[Token], parts: list[Field]) -> list[MapCall] | None:
    """The calls of functions of maps, which become fields; None if some may be of other maps."""
    maps = {part.name.lower() for part in parts if part.logical_type == "map"}
    calls = list(map_calls(tokens, maps)) if maps else []
    # Other tables may have columns of these names.
    tables = [place for place in table_positions(tokens) if tokens[place].upper != "SELECT"]
    return None if calls and len(tables) > 1 else calls


def _types(query: PlannedQuery) -> list[str]:
    return [kind for _, kind in query.columns()]


def _width(field: Field) -> float:
    return estimated_row_bytes(pa.schema([field.to_arrow()]))


def _text(
    text: str, used: UsedFields, names: Mapping[str, str], edits: Iterable[tuple[int, int, str]]
) -> str:
    """The text with some edits, and tables replaced by others, which get the original names as aliases."""
    replaced = [
        (place.start, place.end, place.instead(names[table]))
        for table, places in used.places.items()
        if table in names
        for place in places
    ]
    pieces, last = [], 0
    for start, end, instead in sorted([*replaced, *edits]):
        pieces += [text[last:start], instead]
        last = end
    return "".join([*pieces, text[last:]])
