"""From what the user writes to a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.io.fsspec_store import FsspecStore
from lance_engine.io.local import LocalStore
from lance_engine.io.store import Store


def open_store(
    uri: str | os.PathLike[str] | Store, storage_options: Mapping[str, Any] | None = None
) -> Store:
    """The store of a dataset root.

    `uri` is a local path (``~`` is expanded), a ``file://`` URI, or any URI that fsspec knows;
    `storage_options` go to the fsspec file system. A store is returned unchanged.
    """
    if not isinstance(uri, str | os.PathLike):
        return uri
    text = os.fspath(uri)
    if not text:
        raise UnsupportedFeatureError("The path of the dataset is empty")
    scheme, separator, _ = text.partition("://")
    if not separator:
        return LocalStore(os.path.expanduser(text))
    if scheme.lower() == "file":
        return LocalStore(unquote(urlsplit(text).path))
    return FsspecStore(text, storage_options)
