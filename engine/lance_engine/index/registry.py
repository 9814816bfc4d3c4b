"""The kinds of indices that are read and built. Others are ignored: without an index rows are scanned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lance_engine.index.bitmap import BITMAP
from lance_engine.index.bloomfilter import BLOOMFILTER
from lance_engine.index.btree import BTREE
from lance_engine.index.kind import IndexKind
from lance_engine.index.label_list import LABEL_LIST
from lance_engine.index.ngram import NGRAM
from lance_engine.index.zonemap import ZONEMAP

#: By the name that users give, in the order in which they are preferred where several serve a filter.
KINDS: Final[Mapping[str, IndexKind]] = {
    kind.name: kind for kind in (BTREE, BITMAP, NGRAM, ZONEMAP, BLOOMFILTER, LABEL_LIST)
}
_BY_MESSAGE: Final = {kind.message.lower(): kind for kind in KINDS.values()}


def kind_of(message: str) -> IndexKind | None:
    """The kind whose details message, without ``IndexDetails``, has this name in any case."""
    return _BY_MESSAGE.get(message.lower())
