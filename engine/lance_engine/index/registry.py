"""The supported kinds of indices. Others are ignored: rows without an index are scanned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lance_engine.index.bitmap import BITMAP
from lance_engine.index.bloomfilter import BLOOMFILTER
from lance_engine.index.btree import BTREE
from lance_engine.index.json_values import JSON
from lance_engine.index.kind import IndexKind
from lance_engine.index.label_list import LABEL_LIST
from lance_engine.index.ngram import NGRAM
from lance_engine.index.rtree import RTREE
from lance_engine.index.zonemap import ZONEMAP

#: The kinds that can be built, by name.
KINDS: Final[Mapping[str, IndexKind]] = {
    kind.name: kind for kind in (BTREE, BITMAP, NGRAM, ZONEMAP, BLOOMFILTER, LABEL_LIST)
}
#: The readable kinds, in order of preference if several support a filter.
READ: Final[tuple[IndexKind, ...]] = (*KINDS.values(), JSON, RTREE)

_BUILT_BY_MESSAGE: Final = {kind.message.lower(): kind for kind in KINDS.values()}
_BY_MESSAGE: Final = {kind.message.lower(): kind for kind in READ}


def kind_of(message: str) -> IndexKind | None:
    """The buildable kind whose details message, without ``IndexDetails``, has this name in any case."""
    return _BUILT_BY_MESSAGE.get(message.lower())


def readable_kind(message: str) -> IndexKind | None:
    """The same for all readable kinds."""
    return _BY_MESSAGE.get(message.lower())
