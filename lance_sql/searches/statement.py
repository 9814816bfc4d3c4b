"""The searches of a statement, replaced by tables that the engine scans."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
from lance_engine.errors import DatasetNotFoundError, InvalidSearchError, UnsupportedFeatureError
from lance_engine.scan import ROW_ID, SYSTEM_FIELDS

from lance_sql.catalog.catalog import Catalog
from lance_sql.engines.base import Parameters
from lance_sql.searches.mentions import mentions_distance, mentions_parts
from lance_sql.text.calls import is_alias
from lance_sql.text.explained import is_only_explained
from lance_sql.text.kinds import Does
from lance_sql.text.reference import Reference
from lance_sql.text.searches import HYBRID_SEARCH, VECTOR_SEARCH, Expression, SearchCall, search_calls
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import quote, tokenize

if TYPE_CHECKING:
    from lance_sql.catalog.dataset import SqlDataset
    from lance_sql.searches import lateral
    from lance_sql.searches.indexed_conditions import IndexedCondition
    from lance_sql.searches.nearest_first import NearestFirst
    from lance_sql.searches.one_table import OneTable
    from lance_sql.searches.parameters import SearchParameters
    from lance_sql.searches.plain import PlainSearch
    from lance_sql.searches.table import Answer, SearchTable

_numbers = itertools.count()
#: Numbers and lists of numbers, optionally followed by a vector type.
_NUMBERS: Final = re.compile(r"\s*[-\[\d][-\[\]\d\s.,eE+]*")
_CAST: Final = re.compile(r"(?<=\])\s*::\s*(?i:float|real|double)\[\d+\]\s*$")
_DISTANCE: Final = pa.field("_distance", pa.float32(), nullable=False)
_FOUND_DISTANCE: Final = pa.field("_distance", pa.float32())
_SCORE: Final = pa.field("_score", pa.float32())
_HYBRID_SCORE: Final = pa.field("_hybrid_score", pa.float32())
_COMPUTED: Final = frozenset({_DISTANCE.name, _SCORE.name, _HYBRID_SCORE.name, "query_index"})
_QUERY_INDEX: Final = pa.field("query_index", pa.int32(), nullable=False)
_FLAGS: Final = frozenset({"estimates", "explain_verbose", "fast_search", "prefilter", "use_index"})


class SearchHost(Protocol):
    """What searches need from the session or connection in which a statement runs."""

    #: whether an index may answer queries ordered by a distance
    by_index: bool

    @property
    def catalog(self) -> Catalog:
        """Finds the datasets that a statement names."""

    def rows_of(self, text: str, params: Parameters = None) -> pa.Table:
        """The result of a query that a search needs before it runs."""

    def compute(self, expression: str) -> Any:
        """The value of an expression without columns."""

    def nulls_are_last(self, descending: bool) -> bool:
        """Whether the engine puts nulls last by default."""


class Searches:
    """The searches of a statement, by the names of the tables that replace them.

    `statement` and `parameters` are passed to the engine. Call `prepare` before the statement runs.
    """

    def __init__(self, host: SearchHost, statement: Statement, parameters: Parameters) -> None:
        self._host = host
        self.tables: dict[str, SearchTable] = {}
        self.statement, self.parameters = statement, parameters
        #: whether the statement creates a view, whose searches run much later
        self.is_view = _makes_view(statement)
        #: whether the engine only explains the statement
        self.is_explained = not statement.does & Does.QUERY and is_only_explained(statement)
        #: whether the engine may run the statement immediately
        self.runs_at_once = not self.is_explained and not statement.does & Does.QUERY
        self._pending: list[Callable[[], object]] = []
        # The computed column that orders the result of the only search, if there is one.
        self._order: str | None = None
        self._asked, self._given = statement, parameters
        self._system_columns = statement.system_columns
        calls = search_calls(statement)
        if calls:
            self._replace(calls)
        elif mentions_distance(statement) or mentions_parts(statement):
            self._replace_table(statement)

    @cached_property
    def _parameters(self) -> SearchParameters:
        from lance_sql.searches.parameters import SearchParameters

        return SearchParameters(self._asked, self._given)

    def prepare(self) -> None:
        """Read the query vectors from other tables of the statement."""
        while self._pending:
            self._pending.pop()()

    def plain(self) -> PlainSearch | None:
        """The result of a statement without the engine, if it only reads the rows of a search."""
        if len(self.tables) != 1 or self._order is None or self.parameters or self.is_view:
            return None
        ((name, table),) = self.tables.items()
        from lance_sql.searches.plain import plain_search

        return plain_search(self.statement, name, table, self._order)

    def descriptions(self) -> list[tuple[str, list[str]]]:
        """Descriptions of the searches."""
        return [(name, table.description()) for name, table in self.tables.items()]

    def _replace(self, calls: list[SearchCall]) -> None:
        from lance_sql.searches import lateral

        text = self._asked.original
        pieces, done = [], 0
        for call in calls:
            name = f"lance_search_{next(_numbers)}"
            search = lateral.correlated(self._asked, call) if call.function is VECTOR_SEARCH else None
            alias = "" if _has_alias(text, call.end) else f" AS {call.function.name}"
            pieces.append(text[done : call.start])
            if search is not None:
                self.tables[name] = self._correlated(search)
                pieces.append(lateral.in_place_of(search, name) + alias)
            else:
                self.tables[name] = (
                    self._single(call) if call.function is VECTOR_SEARCH else self._texts(call)
                )
                pieces.append(quote(name) + alias)
            done = call.end
        self.statement = Statement("".join([*pieces, text[done:]]))
        self.parameters = self._parameters.left(self.statement)

    def _replace_table(self, statement: Statement) -> None:
        """Replace the only dataset of a statement by the rows of it that the engine needs."""

        def find(name: Reference) -> SqlDataset | None:
            return self._host.catalog.open(name._replace(certain=False))

        replacement: tuple[OneTable, NearestFirst | IndexedCondition] | None = None
        if mentions_distance(statement):
            from lance_sql.searches.nearest_first import nearest_first

            replacement = nearest_first(
                statement, find, self._constant, self._host.nulls_are_last, self._host.by_index
            )
        elif not set(self._system_columns) - {ROW_ID}:
            from lance_sql.searches.indexed_conditions import indexed_condition

            replacement = indexed_condition(statement, find, self._constant)
        if replacement is None:
            return
        table, rows = replacement
        schema = _with_system_columns(rows.dataset.storage_schema, [ROW_ID], self._system_columns)
        if set(self._system_columns) - {ROW_ID}:
            return
        name = f"lance_search_{next(_numbers)}"

        def answer(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            return rows.batches(columns)

        self.tables[name] = _table(schema, answer, rows.description)
        self.statement = table.replaced(name)

    def _constant(self, text: str) -> Any:
        """The value of an expression, which may be a parameter that is also passed to the engine."""
        tokens = tokenize(text)
        if len(tokens) == 2 and tokens[0].text == "$":
            return self._parameters.value(tokens[1].text)
        return self._computed(text)

    def _computed(self, text: str) -> Any:
        """The value of an expression without columns; plain constants are parsed here."""
        tokens = tokenize(text)
        if len(tokens) == 1 and tokens[0].kind == "string":
            return tokens[0].value
        if len(tokens) == 1 and tokens[0].upper in ("TRUE", "FALSE"):
            return tokens[0].upper == "TRUE"
        plain = _CAST.sub("", text)
        if _NUMBERS.fullmatch(plain):
            try:
                return ast.literal_eval(plain.strip())
            except (SyntaxError, ValueError):
                pass  # 007, or an expression that only SQL understands
        return self._host.compute(text)

    def _single(self, call: SearchCall) -> SearchTable:
        """The result of a call with known arguments."""
        dataset = self._dataset(call)
        options = self._options(call, dataset)
        column = self._column(call, self._value(call.places["column"]))
        query, several = self._vectors(call, call.places["query"])
        from lance_engine.search import check_nearest  # the import takes long

        check_nearest(dataset.snapshot, column, query, **options)
        fields = _fields(dataset, options.pop("columns", None))
        if several:
            fields = [_QUERY_INDEX, *fields]
        else:
            self._order = _DISTANCE.name
        schema = _with_system_columns(pa.schema([*fields, _DISTANCE]), [ROW_ID], self._system_columns)

        def answer(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            # A view always refers to the newest version.
            searched = self._dataset(call) if self.is_view else dataset
            rows = searched.nearest(
                column,
                query,
                columns=[*(name for name in names if name != ROW_ID)] or [_DISTANCE.name],
                with_row_id=ROW_ID in names,
                **options,
            )
            return _batches(rows, names)

        return _table(schema, answer, partial(_description, dataset, column, options))

    def _texts(self, call: SearchCall) -> SearchTable:
        """The result of a full-text search or a hybrid search."""
        dataset = self._dataset(call)
        options = self._options(call, dataset)
        given = {place: self._value(value) for place, value in call.places.items() if place != "query"}
        column, text = self._column(call, given["column"]), given["text"]
        is_hybrid = call.function is HYBRID_SEARCH
        text_column = self._column(call, given["text_column"]) if is_hybrid else column
        vector = self._vectors(call, call.places["query"])[0] if is_hybrid else None
        from lance_engine.search import check_hybrid, check_search

        if is_hybrid:
            check_hybrid(dataset.snapshot, column, vector, text, text_column, **options)
        else:
            check_search(dataset.snapshot, text, column, **options)
        fields = _fields(dataset, options.pop("columns", None))
        scores = [_FOUND_DISTANCE, _SCORE, _HYBRID_SCORE] if is_hybrid else [_SCORE]
        self._order = None if is_hybrid else _SCORE.name
        schema = _with_system_columns(pa.schema([*fields, *scores]), [ROW_ID], self._system_columns)

        def answer(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            searched = self._dataset(call) if self.is_view else dataset
            if is_hybrid:
                rows = searched.hybrid(
                    column,
                    vector,
                    text,
                    text_column,
                    columns=[name for name in names if name != ROW_ID] or [_HYBRID_SCORE.name],
                    with_row_id=ROW_ID in names,
                    **options,
                )
            else:
                rows = searched.search(
                    text,
                    column,
                    columns=[name for name in names if name != ROW_ID] or [_SCORE.name],
                    with_row_id=ROW_ID in names,
                    **options,
                )
            return _batches(rows, names)

        return _table(schema, answer, partial(_words, dataset, call, given, column, options))

    def _correlated(self, search: lateral.Correlated) -> SearchTable:
        """The results for all vectors of another table, each with its query vector."""
        call = search.call
        dataset = self._dataset(call)
        options = self._options(call, dataset)
        column = self._column(call, self._value(call.places["column"]))
        from lance_engine.search import check_nearest

        from lance_sql.searches import lateral
        from lance_sql.searches.different_vectors import different

        check_nearest(dataset.snapshot, column, None, **options)
        fields = _fields(dataset, options.pop("columns", None))
        query = Statement(lateral.query_of_vectors(search))
        given = self._parameters.named(query)
        kind = self._host.rows_of(f"SELECT * FROM ({query.original}) LIMIT 0", given).schema.field(0).type
        searched = pa.field(lateral.SEARCHED, kind)
        schema = _with_system_columns(
            pa.schema([searched, *fields, _DISTANCE]), [ROW_ID], self._system_columns
        )
        asked_for: list[pa.Array] = []

        def vectors() -> pa.Array:
            if not asked_for:
                asked = different(self._host.rows_of(query.original, given).column(0), column)
                if len(asked):
                    check_nearest(dataset.snapshot, column, asked)
                asked_for.append(asked)
            return asked_for[0]

        self._pending.append(vectors)

        def answer(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            every = vectors()
            if not len(every):
                return iter(())
            wanted = [name for name in names if name not in (lateral.SEARCHED, ROW_ID)]
            rows = dataset.nearest(
                column,
                every,
                columns=[_QUERY_INDEX.name, *(name for name in wanted if name != _QUERY_INDEX.name)],
                with_row_id=ROW_ID in names,
                **options,
            )
            rows = rows.append_column(searched, every.take(rows[_QUERY_INDEX.name].combine_chunks()))
            return _batches(rows, names)

        return _table(schema, answer, partial(_description, dataset, column, options))

    @staticmethod
    def _column(call: SearchCall, value: Any) -> str:
        """The column name argument of a call; UnsupportedFeatureError for NULL and numbers."""
        if not isinstance(value, str):
            said = "NULL" if value is None else repr(value)
            raise UnsupportedFeatureError(
                f"{call.function.name} needs the column by name, in quotes, not {said}",
                remedy=f"Write {call.function.usage}",
            )
        return value

    def _options(self, call: SearchCall, dataset: SqlDataset) -> dict[str, Any]:
        options = {name: self._value(value) for name, value in call.options.items()}
        for name in _FLAGS.intersection(options):
            if not isinstance(options[name], bool):
                raise InvalidSearchError(f"{name} must be true or false, not {options[name]!r}")
        options.pop("explain_verbose", None)
        if isinstance(options.get("columns"), str):
            options["columns"] = [options["columns"]]
        if options.pop("prefilter", False) and options.get("filter") is None:
            from lance_sql.searches.prefilter import condition_of

            options["filter"] = condition_of(self._asked, call, dataset.storage_schema)
        return options

    def _dataset(self, call: SearchCall) -> SqlDataset:
        dataset = self._found(call.location, call.quoted)
        if dataset is None:
            raise DatasetNotFoundError(
                f"{call.function.name}: dataset not found",
                path=call.location,
                remedy="Use a path such as 'x.lance', or the name of a registered dataset",
            )
        return dataset

    def _found(self, location: str, quoted: bool) -> SqlDataset | None:
        """The dataset of a path or name; quoted names may contain dots, as unquoted ones do."""
        catalog = self._host.catalog
        if quoted and "." in location and "/" not in location:
            named = catalog.open(Reference(location, location))
            if named is not None:
                return named
        return catalog.open(Reference(location, location, certain=True, quoted=quoted))

    def _vectors(self, call: SearchCall, expression: Expression) -> tuple[Any, bool]:
        """One vector, or if the second value is true, several vectors that a query returns."""
        if not expression.is_query:
            value = self._value(expression)
            if value is None:
                raise InvalidSearchError("The query vector is null", remedy=f"Write {call.function.usage}")
            return value, False
        query = Statement(expression.text[1:-1])
        table = self._host.rows_of(query.original, self._parameters.named(query))
        if table.num_columns != 1:
            raise UnsupportedFeatureError(
                f"The query of {call.function.name} returns {table.num_columns} columns",
                remedy="Select the vectors only",
            )
        if not table.num_rows:
            raise UnsupportedFeatureError(f"The query of {call.function.name} does not return a vector")
        if table.num_rows > 1:
            return table.column(0).combine_chunks(), True
        vector = table.column(0)[0].as_py()
        if vector is None:
            raise InvalidSearchError(f"The query of {call.function.name} returns null, not a vector")
        return vector, False

    def _value(self, expression: Expression) -> Any:
        if self._parameters.holds(expression):
            return self._parameters.take(expression)
        if expression.is_query:
            rows = self._host.rows_of(expression.text[1:-1])
            return rows.column(0)[0].as_py() if rows.num_rows else None
        return self._computed(expression.text)


def _table(schema: pa.Schema, answer: Answer, description: Callable[[], list[str]]) -> SearchTable:
    from lance_sql.searches.table import SearchTable  # slow to import, and only needed with searches

    return SearchTable(schema, answer, description)


def _makes_view(statement: Statement) -> bool:
    words = [token.upper for token in statement.tokens[:6]]
    return bool(words) and words[0] == "CREATE" and "VIEW" in words


def _fields(dataset: SqlDataset, columns: Any) -> list[pa.Field]:
    if columns is None:
        return list(dataset.storage_schema)
    schema = dataset.storage_schema
    names = [name for name in dict.fromkeys(columns) if name not in _COMPUTED]
    for name in names:
        if name not in schema.names:
            raise UnsupportedFeatureError(
                f"columns only supports top-level columns, not {name!r}",
                remedy="Leave columns out, and select fields of structs in the query",
            )
    return [schema.field(name) for name in names]


def _with_system_columns(schema: pa.Schema, known: Sequence[str], asked: Sequence[str]) -> pa.Schema:
    for name in known:
        if name in asked and name not in schema.names:
            schema = schema.append(SYSTEM_FIELDS[name])
    return schema


def _batches(rows: pa.Table, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if not names:  # rows without columns: keep the row count with any column
        return iter(rows.to_batches())
    return iter(rows.select(list(names)).to_batches())


def _description(dataset: SqlDataset, column: str, options: Mapping[str, Any]) -> list[str]:
    from lance_engine.search import explain_nearest

    k, metric, filter = options.get("k", 10), options.get("metric"), options.get("filter")
    lines = explain_nearest(dataset.snapshot, column, k, metric, options)
    return [*lines, *([f"filter    {filter}, before the nearest are chosen"] if filter else [])]


def _words(
    dataset: SqlDataset, call: SearchCall, given: Mapping[str, Any], column: str, options: Mapping[str, Any]
) -> list[str]:
    from lance_engine.search import explain_texts

    if call.function is not HYBRID_SEARCH:
        lines = [f"words     {given['text']!r} in {column}, {options.get('k', 10):,} rows by their scores"]
        filter = options.get("filter")
        lines += explain_texts(dataset.snapshot, column, options)
        return [*lines, *([f"filter    {filter}, before the best are chosen"] if filter else [])]
    lines = [f"words     {given['text']!r} in {given['text_column']}"]
    lines += explain_texts(dataset.snapshot, str(given["text_column"]), {**options, "use_index": True})
    return [*_description(dataset, column, options), *lines]


def _has_alias(text: str, end: int) -> bool:
    following = tokenize(text[end:])[:1]
    return bool(following) and is_alias(following[0])
