"""Runs changes of a dataset in processes that are killed at a chosen storage call.

Started once; reads one JSON request per line: what to do, to which dataset, and before or after which call
the process dies. Each request is carried out by a fork, which is killed with SIGKILL: no handler runs. The
answer is ``survived``, or the name of the call that was the last one. Calls that only read do not count.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.io import dynamodb, local, object_upload, obstore_store, sqlite
from lance_engine.write.dataset import write_dataset

ADDED = pa.table({"id": [100, 101]})


def change(operation: str, uri: str, options: dict[str, Any] | None) -> None:
    """The operations under test, on a dataset with a column id."""
    match operation:
        case "create":
            write_dataset(ADDED, uri, storage_options=options)
        case "append" | "overwrite":
            write_dataset(ADDED, uri, operation, storage_options=options)
        case "delete":
            DatasetVersion.open(uri, storage_options=options).delete("id = 3 OR id = 12")
        case "update":
            DatasetVersion.open(uri, storage_options=options).update({"id": "id + 1000"}, "id = 3 OR id = 12")
        case "compact":
            DatasetVersion.open(uri, storage_options=options).compact()
        case "branch":
            DatasetVersion.open(uri, storage_options=options).branches.create("dev")


class _Clock:
    """Kills the process before or after the n-th call."""

    def __init__(self, at: int, when: str, report: int) -> None:
        self.left, self.when, self.report = at, when, report

    def wrap(self, owner: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            mine = self.left == 0
            if mine and self.when == "before":
                self._die(name)
            try:
                return original(*args, **kwargs)
            finally:
                if mine:
                    self._die(name)

        setattr(owner, name, counted)

    def _die(self, name: str) -> None:
        os.write(self.report, name.encode())
        os.kill(os.getpid(), signal.SIGKILL)


def instrument(clock: _Clock) -> None:
    """Count what changes storage."""
    for name in ("link", "replace", "unlink", "makedirs"):
        clock.wrap(os, name)
    for name in ("__init__", "write"):
        clock.wrap(local._LocalSink, name)
    for name in ("put", "put_if_absent", "delete"):
        clock.wrap(obstore_store.ObstoreStore, name)
    for name in ("__init__", "close"):
        clock.wrap(object_upload.ObjectSink, name)
    for store in (dynamodb.DynamoDBManifestStore, sqlite.SQLiteManifestStore):
        for name in ("add", "replace"):
            clock.wrap(store, name)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            status = 0
            try:
                instrument(_Clock(request["at"], request["when"], writing))
                change(request["operation"], request["uri"], request["options"])
                os.write(writing, b"survived")
            except BaseException as error:
                os.write(writing, f"failed: {error!r}".encode())
                status = 1
            os._exit(status)
        os.close(writing)
        with os.fdopen(reading) as report:
            answer = report.read()
        os.waitpid(child, 0)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
