"""Versions recorded in an Amazon DynamoDB table, in the layout of the official implementation.

The table has the keys ``base_uri`` (hash, text: the path of the dataset in its bucket) and ``version``
(range, number); each item has ``path``, ``committer``, ``size`` and optionally ``e_tag``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from lance_engine.errors import CorruptFileError, DatasetNotFoundError, UnsupportedFeatureError
from lance_engine.io.access import access_explained
from lance_engine.io.cloud_options import check_address
from lance_engine.io.external import ManifestEntry
from lance_engine.io.storage_options import botocore_options, option

_KEYS: Final = [
    {"AttributeName": "base_uri", "KeyType": "HASH"},
    {"AttributeName": "version", "KeyType": "RANGE"},
]
_ABSENT: Final = "attribute_not_exists(base_uri) AND attribute_not_exists(version)"
_PRESENT: Final = "attribute_exists(base_uri) AND attribute_exists(version)"
_COMMITTER: Final = "lancedb"


@dataclass(frozen=True, slots=True)
class _Connection:
    """A client, which threads may share, and the tables whose keys were checked."""

    client: Any
    tables: set[str] = field(default_factory=set)


# Making a client takes longer than opening a dataset.
_connections: dict[tuple[Any, ...], _Connection] = {}
_connecting = threading.Lock()


def _forget_connections() -> None:
    """A forked process must not use the sockets of its parent, and cannot rely on its lock."""
    global _connecting
    _connections.clear()
    _connecting = threading.Lock()


os.register_at_fork(after_in_child=_forget_connections)


def _connect(options: Mapping[str, Any]) -> _Connection:
    try:
        from botocore.session import Session
    except ImportError as error:
        raise UnsupportedFeatureError(
            "DynamoDB manifest stores need botocore", remedy="pip install lance-sql[s3]"
        ) from error
    endpoint = option(options, "dynamodb_endpoint", "dynamodb_endpoint_url")
    endpoint = endpoint or os.environ.get("DYNAMODB_ENDPOINT") or None
    if endpoint:
        check_address("dynamodb_endpoint", str(endpoint))
    profile = option(options, "profile", "aws_profile")
    arguments = botocore_options(options)
    # Missing options come from the environment.
    environment = ((name, value) for name, value in os.environ.items() if name.startswith("AWS_"))
    key = (endpoint, profile, *sorted(arguments.items()), *sorted(environment))
    # Creating clients is not safe in several threads.
    with _connecting:
        connection = _connections.get(key)
        if connection is None:
            client = Session(profile=profile).create_client("dynamodb", endpoint_url=endpoint, **arguments)
            connection = _connections[key] = _Connection(client)
    return connection


class DynamoDBManifestStore:
    """The table `table`; `options` are storage options, ``dynamodb_endpoint`` among them."""

    def __init__(self, table: str, options: Mapping[str, Any] | None = None) -> None:
        self._table = table
        self._options = dict(options or {})

    def latest(self, dataset: str) -> ManifestEntry | None:
        with self._explained(dataset):
            answer = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="base_uri = :dataset",
                ExpressionAttributeValues={":dataset": {"S": dataset}},
                ScanIndexForward=False,
                Limit=1,
            )
        items = answer.get("Items", [])
        return _entry(items[0]) if items else None

    def get(self, dataset: str, version: int) -> ManifestEntry | None:
        with self._explained(dataset):
            answer = self._client.get_item(
                TableName=self._table,
                ConsistentRead=True,
                Key={"base_uri": {"S": dataset}, "version": {"N": str(version)}},
            )
        return _entry(answer["Item"]) if "Item" in answer else None

    def add(self, dataset: str, entry: ManifestEntry) -> None:
        if not self._put(dataset, entry, _ABSENT):
            raise FileExistsError(entry.path)

    def replace(self, dataset: str, entry: ManifestEntry) -> None:
        if not self._put(dataset, entry, _PRESENT):
            raise CorruptFileError(
                f"The DynamoDB table '{self._table}' is missing a version",
                path=dataset,
                version=entry.version,
            )

    def forget(self, dataset: str) -> None:
        while (entry := self.latest(dataset)) is not None:
            key = {"base_uri": {"S": dataset}, "version": {"N": str(entry.version)}}
            with self._explained(dataset):
                self._client.delete_item(TableName=self._table, Key=key)

    def _put(self, dataset: str, entry: ManifestEntry, condition: str) -> bool:
        item: dict[str, Any] = {
            "base_uri": {"S": dataset},
            "version": {"N": str(entry.version)},
            "path": {"S": entry.path},
            "committer": {"S": _COMMITTER},
        }
        if entry.size is not None:
            item["size"] = {"N": str(entry.size)}
        if entry.e_tag is not None:
            item["e_tag"] = {"S": entry.e_tag}
        with self._explained(dataset):
            client = self._client
            try:
                client.put_item(TableName=self._table, Item=item, ConditionExpression=condition)
            except client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def _explained(self, dataset: str) -> AbstractContextManager[None]:
        return access_explained(f"s3+ddb://{dataset}", self._options)

    @property
    def _client(self) -> Any:
        connection = _connect(self._options)
        if self._table not in connection.tables:
            self._check_table(connection.client)
            connection.tables.add(self._table)
        return connection.client

    def _check_table(self, client: Any) -> None:
        try:
            keys = client.describe_table(TableName=self._table)["Table"]["KeySchema"]
        except client.exceptions.ResourceNotFoundException:
            raise DatasetNotFoundError(
                f"DynamoDB table '{self._table}' not found",
                remedy="Create it with the keys base_uri (hash, string) and version (range, number)",
            ) from None
        if sorted(keys, key=lambda key: str(key["KeyType"])) != _KEYS:
            raise UnsupportedFeatureError(
                f"The keys of the DynamoDB table '{self._table}' are not those of a manifest store",
                remedy="Its keys must be base_uri (hash, string) and version (range, number), and no others",
            )


def _entry(item: Mapping[str, Any]) -> ManifestEntry:
    try:
        return ManifestEntry(
            int(item["version"]["N"]),
            item["path"]["S"],
            int(item["size"]["N"]) if "size" in item else None,
            item["e_tag"]["S"] if "e_tag" in item else None,
        )
    except (KeyError, ValueError) as error:
        raise CorruptFileError(f"Invalid item in the manifest store: {item}") from error
