"""A plain implementation of BM25."""

import math


def bm25(documents, terms, *, needs_all=False):
    """Scores by number of document, of documents that are lists of tokens, for different terms."""
    documents = [tokens or [] for tokens in documents]
    filled = [tokens for tokens in documents if tokens]
    mean = sum(map(len, filled)) / max(1, len(filled))
    scores = {}
    for number, tokens in enumerate(documents):
        found = [term for term in terms if term in tokens]
        if not found or (needs_all and len(found) < len(terms)):
            continue
        total = 0.0
        for term in found:
            having = sum(term in other for other in filled)
            idf = math.log(1 + (len(filled) - having + 0.5) / (having + 0.5))
            often = tokens.count(term)
            total += idf * 2.2 * often / (often + 1.2 * (0.25 + 0.75 * len(tokens) / mean))
        scores[number] = total
    return scores


def has_phrase(tokens, words):
    """Whether the words are next to each other in a list of tokens."""
    return any(tokens[at : at + len(words)] == words for at in range(len(tokens)))
