"""``VECTOR_SEARCH``, ``SEARCH`` and ``HYBRID_SEARCH`` of Spark SQL, with the arguments of lance-spark.

SearchFunctions.java passes the arguments as they were written; one task searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from lance_engine.base import nearest_name
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import InvalidSearchError, UnsupportedFeatureError
from lance_engine.scan import ROW_ID, SYSTEM_FIELDS

_DISTANCE: Final = pa.field("_distance", pa.float32())
_SCORE: Final = pa.field("_score", pa.float32())
_RELEVANCE: Final = pa.field("_relevance_score", pa.float32())
_QUERY_INDEX: Final = pa.field("query_index", pa.int32(), nullable=False)
#: The constant of reciprocal rank fusion, which `Dataset.hybrid` uses.
_RRF_K: Final = 60
_DEFAULT_COLUMN: Final = "vector"

_COUNTS: Final = dict.fromkeys(("num_results", "limit", "k"), "k")
_ROWS: Final = {
    **_COUNTS,
    **{name: name for name in ("columns", "filter", "offset", "version", "with_row_id")},
}
_WORDS: Final = {"query": "text", "search_query": "text", "search_columns": "text_columns"}
_VECTORS: Final = {
    "query_vector": "vector",
    "vector_column": "column",
    "distance_type": "metric",
    "bypass_vector_index": "bypass",
    **{name: name for name in ("nprobes", "refine_factor", "fast_search", "prefilter")},
}
_CANDIDATES: Final = dict.fromkeys(("candidates", "num_candidates", "candidate_count"), "candidates")
#: Function -> its positional arguments after the table, and its named ones with what we call them.
_FUNCTIONS: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]]] = {
    "vector_search": (
        ("query_vector", "num_results"),
        {**_ROWS, **_VECTORS, "ef": "ef", "lower_bound": "lower", "upper_bound": "upper"},
    ),
    "search": (("query", "num_results"), {**_ROWS, **_WORDS}),
    "hybrid_search": (
        ("query_vector", "query", "num_results"),
        {**_ROWS, **_VECTORS, **_WORDS, **_CANDIDATES, "rrf_k": "rrf_k"},
    ),
}


def version_of(told: Mapping[str, Any]) -> str | None:
    """The version that a search names."""
    version = told["named"].get("version")
    return None if version is None else str(version)


class AskedSearch:
    """A search of one version of a dataset; InvalidSearchError and others if the arguments do not fit."""

    def __init__(self, dataset: DatasetVersion, told: Mapping[str, Any]) -> None:
        from lance_engine.search import check_hybrid, check_nearest, check_search

        self._dataset = dataset
        self._name = str(told["function"])
        given = _arguments(self._name, told["positional"], told["named"])
        given.pop("version", None)
        self._offset = given.pop("offset", 0)
        self._with_row_id = given.pop("with_row_id", False)
        self._k = given.pop("k", 10)
        if not all(isinstance(n, int) and n >= least for n, least in ((self._k, 1), (self._offset, 0))):
            raise InvalidSearchError(
                f"{self._name.upper()} needs a positive number of results, and an offset from 0"
            )
        names = given.pop("columns", None)
        names = dataset.schema.names if names in (None, ["*"], "*") else list(names)
        if ROW_ID in names:
            self._with_row_id, names = True, [name for name in names if name != ROW_ID]
        self._columns = [name for name in names if name not in (_DISTANCE.name, _SCORE.name, _RELEVANCE.name)]
        options: dict[str, Any] = {"filter": given.pop("filter", None)}
        several = False
        match self._name:
            case "search":
                self._places: tuple[Any, ...] = (
                    _required(self._name, given, "query", "text"),
                    given.pop("text_columns", None),
                )
                check_search(dataset.snapshot, *self._places, self._last, columns=self._columns, **options)
                scores = [_SCORE]
            case "vector_search":
                vector = _required(self._name, given, "query_vector", "vector")
                several = isinstance(vector[0] if isinstance(vector, list) and vector else None, list)
                if several and self._offset:
                    raise InvalidSearchError("Several query vectors cannot be combined with offset")
                self._places = (_vector_column(dataset, given), vector)
                options |= _index_options(given)
                check_nearest(dataset.snapshot, *self._places, self._last, columns=self._columns, **options)
                scores = [_DISTANCE]
            case _:
                vector = _required(self._name, given, "query_vector", "vector")
                text = _required(self._name, given, "query", "text")
                self._places = (_vector_column(dataset, given), vector, text, given.pop("text_columns", None))
                fusion = self._fusion(given)
                options |= _index_options(given) | fusion
                check_hybrid(dataset.snapshot, *self._places, self._last, columns=self._columns, **options)
                scores = [_DISTANCE, _SCORE, _RELEVANCE]
        self._options = options
        fields = [*dataset.scan(columns=self._columns).schema, *scores]
        fields += [SYSTEM_FIELDS[ROW_ID]] if self._with_row_id else []
        self.schema: Final = pa.schema([_QUERY_INDEX, *fields] if several else fields)

    @property
    def _last(self) -> int:
        return int(self._k + self._offset)

    def _fusion(self, given: dict[str, Any]) -> dict[str, Any]:
        constant = given.pop("rrf_k", _RRF_K)
        if constant != _RRF_K:
            raise UnsupportedFeatureError(
                f"The constant of rank fusion is {_RRF_K}, not {constant}", remedy="Leave rrf_k out"
            )
        candidates = max(given.pop("candidates", self._last), self._last)
        return {"oversample": -(-candidates // self._last)}

    def rows(self, names: Sequence[str]) -> pa.Table:
        """Some columns of the rows found, in their order."""
        searches: dict[str, Callable[..., pa.Table]] = {
            "vector_search": self._dataset.nearest,
            "search": self._dataset.search,
            "hybrid_search": self._dataset.hybrid,
        }
        found = searches[self._name](
            *self._places, k=self._last, columns=self._columns, with_row_id=self._with_row_id, **self._options
        )
        found = found.rename_columns(
            [_RELEVANCE.name if name == "_hybrid_score" else name for name in found.column_names]
        )
        return found.slice(self._offset).select(list(names))


def _arguments(name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by our names."""
    places, known = _FUNCTIONS[name]
    if len(positional) > len(places):
        raise InvalidSearchError(
            f"{name.upper()} takes a table, {', '.join(places)} by position, not more",
            remedy=f"Name the others: {places[-1]} => ...",
        )
    given: dict[str, Any] = {}
    for argument, value in [*zip(places, positional, strict=False), *named.items()]:
        ours = known.get(argument)
        if ours is None:
            near = nearest_name(argument, known)
            hint = f"Did you mean '{near}'? " if near else ""
            raise InvalidSearchError(
                f"{name.upper()} has no argument '{argument}'",
                remedy=f"{hint}Its arguments are table, {', '.join(known)}",
            )
        if ours in given:
            raise InvalidSearchError(
                f"{name.upper()} gets the argument '{argument}' twice", remedy="Give it once"
            )
        if value is not None:
            given[ours] = value
    return given


def metric_of(name: object) -> str:
    """Our name of a distance, which lance-spark writes in any case."""
    text = str(name).lower()
    return "l2" if text == "euclidean" else text


def _required(name: str, given: dict[str, Any], argument: str, ours: str) -> Any:
    if ours not in given:
        raise InvalidSearchError(f"{name.upper()} needs the argument '{argument}'")
    return given.pop(ours)


def _vector_column(dataset: DatasetVersion, given: dict[str, Any]) -> str:
    """The column that is named, or the one called "vector", or the only one of vectors."""
    column = given.pop("column", None)
    if column is not None:
        return str(column)
    vectors = [f.name for f in dataset.storage_schema if pa.types.is_fixed_size_list(f.type)]
    return vectors[0] if len(vectors) == 1 else _DEFAULT_COLUMN


def _index_options(given: dict[str, Any]) -> dict[str, Any]:
    metric = given.pop("metric", None)
    if given.pop("prefilter", True) is False:
        raise UnsupportedFeatureError(
            "The filter of a search applies before the nearest rows are chosen",
            remedy="Write conditions on the rows found in WHERE",
        )
    options = {
        "metric": None if metric is None else metric_of(metric),
        "use_index": not given.pop("bypass", False),
    }
    return options | given
