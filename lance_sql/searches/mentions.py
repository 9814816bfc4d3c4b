"""Cheap tests of whether an index may answer part of a statement; what answers it is only imported then."""

from __future__ import annotations

from typing import Final

from lance_sql.text.statement import Statement, once_per_statement

#: Function -> metric, and whether ascending order returns the nearest rows first.
DISTANCES: Final = {
    **dict.fromkeys(("array_distance", "list_distance", "euclidean_distance"), ("l2", True)),
    **dict.fromkeys(("array_cosine_distance", "list_cosine_distance", "cosine_distance"), ("cosine", True)),
    **dict.fromkeys(
        (
            "array_negative_inner_product",
            "list_negative_inner_product",
            "array_negative_dot_product",
            "list_negative_dot_product",
        ),
        ("dot", True),
    ),
    **dict.fromkeys(("array_cosine_similarity", "list_cosine_similarity"), ("cosine", False)),
    **dict.fromkeys(
        (
            "array_inner_product",
            "list_inner_product",
            "array_dot_product",
            "list_dot_product",
            "inner_product",
            "dot_product",
        ),
        ("dot", False),
    ),
}
#: Functions and operators on lists and strings that indices support. Engines test these themselves.
_WORDS: Final = frozenset(
    {
        "array_contains",
        "array_has",
        "array_has_all",
        "array_has_any",
        "arrays_overlap",
        "contains",
        "ends_with",
        "like",
        "list_contains",
        "list_has",
        "list_has_all",
        "list_has_any",
        "prefix",
        "starts_with",
        "suffix",
    }
)


@once_per_statement
def mentions_distance(statement: Statement) -> bool:
    """Whether a statement may be ordered by a distance; a cheap test."""
    words = [token.text.lower() for token in statement.tokens if token.kind == "word"]
    return "order" in words and "limit" in words and any(word in DISTANCES for word in words)


@once_per_statement
def mentions_parts(statement: Statement) -> bool:
    """Whether a statement may have a condition on elements of lists or parts of strings; a cheap test."""
    words = {token.text.lower() for token in statement.tokens if token.kind == "word"}
    return "where" in words and not words.isdisjoint(_WORDS)
