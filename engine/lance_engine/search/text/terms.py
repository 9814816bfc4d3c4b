"""The terms of a query with their weights, and the conditions for a document to match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lance_engine import kernels
from lance_engine.index.inverted.json_documents import Analyzer
from lance_engine.search.text.query import Match, Phrase

F32Array = npt.NDArray[np.float32]

# The parameters of BM25.
K1: Final = 1.2
B: Final = 0.75

#: Returns the terms that match a fuzzy word.
Expand = Callable[[bytes, Match], Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Terms:
    """The distinct terms of a query; `groups` has for each of its words the numbers of its terms.

    `places` are the relative positions of the words of a phrase.
    """

    texts: tuple[bytes, ...]
    groups: tuple[tuple[int, ...], ...]
    boost: float
    needs_all: bool
    places: tuple[int, ...] | None
    slop: int

    @property
    def weights(self) -> F32Array:
        """How often each term counts."""
        weights = np.zeros(len(self.texts), dtype=np.float32)
        for group in self.groups:
            for number in group:
                weights[number] += self.boost
        return weights

    @property
    def phrase(self) -> kernels.Phrase | None:
        """The phrase that documents must contain, if any."""
        if self.places is None:
            return None
        return kernels.Phrase([number for (number,) in self.groups], list(self.places), self.slop)


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of documents with tokens, of all their tokens, and of documents with each term."""

    documents: int
    tokens: int
    frequencies: Mapping[bytes, int]

    def idf(self, term: bytes) -> float:
        """How rare a term is."""
        frequency = self.frequencies.get(term, 0)
        return float(np.log1p((self.documents - frequency + 0.5) / (frequency + 0.5)))

    @property
    def mean_length(self) -> float:
        """Tokens of a document."""
        return self.tokens / self.documents if self.documents else 1.0

    def __add__(self, other: Statistics) -> Statistics:
        names = self.frequencies.keys() | other.frequencies.keys()
        return Statistics(
            self.documents + other.documents,
            self.tokens + other.tokens,
            {name: self.frequencies.get(name, 0) + other.frequencies.get(name, 0) for name in names},
        )


NO_STATISTICS: Final = Statistics(0, 0, {})


def terms_of(query: Match | Phrase, analyzer: Analyzer, expand: Expand | None = None) -> Terms:
    """The terms of a query, tokenized like the texts of a column."""
    tokens = analyzer.tokens(query.text)
    numbers: dict[bytes, int] = {}
    groups: list[tuple[int, ...]] = []
    is_phrase = isinstance(query, Phrase)
    before: int | None = None
    for token in tokens:
        texts: Sequence[bytes] = [token.text]
        if isinstance(query, Match) and query.fuzziness and expand is not None:
            texts = expand(token.text, query)
        numbered = tuple(numbers.setdefault(text, len(numbers)) for text in texts)
        if token.position == before and not is_phrase:
            # Parts of one word, one of which is sufficient.
            groups[-1] += numbered
        else:
            groups.append(numbered)
        before = token.position
    first = tokens[0].position if tokens else 0
    return Terms(
        tuple(numbers),
        tuple(groups),
        1.0 if isinstance(query, Phrase) else query.boost,
        isinstance(query, Phrase) or query.operator.lower() == "and",
        tuple(token.position - first for token in tokens) if is_phrase else None,
        query.slop if isinstance(query, Phrase) else 0,
    )
