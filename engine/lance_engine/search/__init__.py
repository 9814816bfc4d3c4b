"""Finding rows by similarity instead of by conditions."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.search.column import vector_column
    from lance_engine.search.explain import explain_nearest, explain_texts
    from lance_engine.search.hybrid import check_hybrid
    from lance_engine.search.nearest import check_nearest, has_index, nearest_among, nearest_table
    from lance_engine.search.query import matrix_of
    from lance_engine.search.text.column import text_column
    from lance_engine.search.text.query import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery
    from lance_engine.search.text.search import check_search
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "search.column": "vector_column",
            "search.explain": "explain_nearest explain_texts",
            "search.hybrid": "check_hybrid",
            "search.nearest": "check_nearest has_index nearest_among nearest_table",
            "search.query": "matrix_of",
            "search.text.column": "text_column",
            "search.text.query": "Boolean Boost Match MultiMatch Phrase TextQuery",
            "search.text.search": "check_search",
        },
    )
