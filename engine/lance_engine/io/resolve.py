"""From a URI to a store, whose module is imported on first use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.io.external_access import (
    ExternalAccess,
    external_access,
    local_folder,
    without_external_access,
)
from lance_engine.io.local import LocalStore
from lance_engine.io.storage_options import ENDPOINTS, max_in_flight, option
from lance_engine.io.store import Store, is_encodable

_DYNAMODB: Final = "s3+ddb"
_SQLITE: Final = "+sqlite"


def open_store(
    uri: str | os.PathLike[str] | Store, storage_options: Mapping[str, Any] | None = None
) -> Store:
    """The store of a dataset root. A store is returned unchanged.

    `uri` is a local path (``~`` is expanded), a ``file://`` URI, or any URI that fsspec knows;
    `storage_options` are those of its file system, in the spelling of fsspec or of the object store. Versions
    are recorded by a database for ``s3+ddb://bucket/path?ddbTableName=TABLE`` (DynamoDB), for
    ``file+sqlite:///path?db=FILE`` (or another scheme before the plus), and with the storage option
    ``manifest_store``, whose value is ``sqlite:///FILE``.
    """
    if not isinstance(uri, str | os.PathLike):
        return uri
    text = os.fspath(uri)
    if not text:
        raise UnsupportedFeatureError("The path of the dataset is empty")
    if "\0" in text or not is_encodable(text):
        raise CorruptFileError("Invalid dataset path", path=repr(text))
    access = external_access(storage_options)
    options = without_external_access(storage_options)
    max_in_flight(options)  # refuses invalid values
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower() if separator else ""
    if scheme == _DYNAMODB:
        location, table = _parameter(text, rest, "ddbTableName")
        return _with_dynamodb(f"s3://{location}", table, text, options)
    if scheme.endswith(_SQLITE):
        location, database = _parameter(text, rest, "db")
        store = _plain_store(f"{scheme.removesuffix(_SQLITE)}://{location}", options, access)
        return _with_sqlite(store, database, text)
    store = _plain_store(text, options, access)
    manifests = option(options, "manifest_store")
    if manifests is None:
        return store
    kind, separator, database = str(manifests).partition("://")
    if kind != "sqlite" or not database:
        raise UnsupportedFeatureError(
            "Unknown kind of manifest_store",
            remedy="Use sqlite:///path/to/file.db; for DynamoDB, use a dataset path such as s3+ddb://...",
        )
    return _with_sqlite(store, database, store.uri)


def _plain_store(text: str, options: Mapping[str, Any], access: ExternalAccess) -> Store:
    folder = local_folder(text)
    if folder is not None:
        return LocalStore(folder, access)
    return _remote_store(text, options)


def _remote_store(text: str, options: Mapping[str, Any]) -> Store:
    store: Store | None
    if text.lower().startswith(("http://", "https://")):
        from lance_engine.io.http_store import http_store

        store = http_store(text, options)
    else:
        from lance_engine.io.obstore_store import object_store

        store = object_store(text, options)
    if store is None:
        from lance_engine.io.fsspec_store import FsspecStore

        store = FsspecStore(text, options)
    from lance_engine.io.cached_store import cached

    # Buckets of the same name may be at several endpoints.
    return cached(
        store, f"{store.uri}\0{option(options, *ENDPOINTS) or os.environ.get('AWS_ENDPOINT_URL', '')}"
    )


def _parameter(uri: str, rest: str, name: str) -> tuple[str, str]:
    """The location and one parameter of a URI, without its scheme, that ends with ``?name=value``."""
    location, _, query = rest.partition("?")
    values = parse_qs(query).get(name)
    if not values:
        raise UnsupportedFeatureError(
            f"The path has no manifest store: '{name}' is missing",
            path=uri,
            remedy=f"Append ?{name}=... to the path",
        )
    return location.rstrip("/"), values[0]


def _with_dynamodb(location: str, table: str, uri: str, options: Mapping[str, Any]) -> Store:
    from lance_engine.io.dynamodb import DynamoDBManifestStore
    from lance_engine.io.external import ExternallyCommittedStore

    # The official implementation names datasets by their paths in the bucket.
    key = urlsplit(location).path.strip("/")
    return ExternallyCommittedStore(
        _remote_store(location, options), DynamoDBManifestStore(table, options), key, uri
    )


def _with_sqlite(store: Store, database: str, uri: str) -> Store:
    from lance_engine.io.external import ExternallyCommittedStore
    from lance_engine.io.sqlite import SQLiteManifestStore

    manifests = SQLiteManifestStore(os.path.expanduser(database))
    root = store.local_path("_")
    # A shared disk may be mounted anywhere: what counts is where the dataset is from the database's folder.
    key = store.uri
    if root is not None:
        key = os.path.relpath(os.path.dirname(root), os.path.dirname(manifests.path)).replace(os.sep, "/")
    return ExternallyCommittedStore(store, manifests, key, uri)
