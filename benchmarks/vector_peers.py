"""The peers of `benchmarks.vectors`, each with one way to search and one to build."""

from __future__ import annotations

import importlib
import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import lance_sql

Vectors = npt.NDArray[np.float32]


class Found(NamedTuple):
    """What a search found, and how long it took."""

    milliseconds: float
    ids: list[list[int]]


class UnavailableError(Exception):
    """A peer cannot do this."""


def timed(work: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    done = work()
    return 1000 * (time.perf_counter() - begin), done


class Ours:
    """`Dataset.nearest`."""

    name = "lance-sql"

    def __init__(self, path: str) -> None:
        self.path = path
        self.dataset = lance_sql.open(path)

    def build(self, kind: str, **options: Any) -> None:
        self.dataset = lance_sql.open(self.path).create_index("v", kind, replace=True, **options)

    def reopen(self) -> None:
        """New versions are found by every statement, and by `build`."""

    def search(self, queries: Vectors, k: int, filter: str | None = None, **options: Any) -> Found:
        took, table = timed(
            lambda: self.dataset.nearest("v", queries, k, columns=["id"], filter=filter, **options)
        )
        ids = table["id"].to_pylist()
        return Found(took, [ids[begin : begin + k] for begin in range(0, len(ids), k)])


class OurSql(Ours):
    """`lance_vector_search` through DuckDB."""

    name = "lance-sql, SQL"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.session = lance_sql.connect()

    def search(self, queries: Vectors, k: int, filter: str | None = None, **options: Any) -> Found:
        if len(queries) > 1:
            raise UnavailableError
        sql = _statement(self.path, "?", k, filter, options)
        took, rows = timed(lambda: self.session.sql(sql, params=[queries[0]]).fetchall())
        return Found(took, [[row[0] for row in rows]])


class Pylance:
    """The format's own library."""

    name = "pylance"

    def reopen(self) -> None:
        """`build` does."""

    def __init__(self, path: str) -> None:
        self.lance = importlib.import_module("lance")
        self.dataset = self.lance.dataset(path)

    def build(self, kind: str, **options: Any) -> None:
        self.dataset = self.lance.dataset(self.dataset.uri)  # others may have changed it
        self.dataset.create_index("v", kind, replace=True, **options)
        self.dataset = self.lance.dataset(self.dataset.uri)

    def search(self, queries: Vectors, k: int, filter: str | None = None, **options: Any) -> Found:
        def one(query: Vectors) -> list[int]:
            nearest = {"column": "v", "q": query, "k": k, **options}
            table = self.dataset.to_table(
                columns=["id", "_distance"], nearest=nearest, filter=filter, prefilter=True
            )
            return list(table["id"].to_pylist())

        return Found(*timed(lambda: [one(query) for query in queries]))


class Faiss:
    """`faiss.IndexFlatL2` over vectors in memory."""

    name = "faiss"

    def reopen(self) -> None:
        """It has no index of a dataset."""

    def __init__(self, values: Vectors) -> None:
        self.index = importlib.import_module("faiss").IndexFlatL2(values.shape[1])
        self.index.add(values)

    def search(self, queries: Vectors, k: int, filter: str | None = None, **options: Any) -> Found:
        if filter is not None or options.get("use_index", True):
            raise UnavailableError
        took, found = timed(lambda: self.index.search(queries, k))
        return Found(took, found[1].tolist())


class Extension:
    """DuckDB's lance extension, in its own process; it measures its own times."""

    name = "extension"

    def __init__(self, path: str, python: str) -> None:
        self.path, self.python = path, python
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        script = Path(__file__).with_name("duckdb_extension.py")
        return subprocess.Popen(
            [self.python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def reopen(self) -> None:
        self.close()
        self.process = self._started()

    def close(self) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()

    def search(self, queries: Vectors, k: int, filter: str | None = None, **options: Any) -> Found:
        if len(queries) > 1:
            raise UnavailableError
        vector = f"{queries[0].astype(float).tolist()}::FLOAT[{queries.shape[1]}]"
        asked = {"sql": _statement(self.path, vector, k, filter, options)}
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        told = json.loads(self.process.stdout.readline())  # type: ignore[union-attr]
        if "error" in told:
            raise UnavailableError(told["error"])
        return Found(told["milliseconds"], [told["ids"]])


def _statement(path: str, vector: str, k: int, filter: str | None, options: Mapping[str, Any]) -> str:
    """The same statement for both: our functions take the extension's arguments."""
    names = {"nprobes": "nprobs"}
    given = [f"{names.get(name, name)} := {json.dumps(value)}" for name, value in options.items()]
    call = ", ".join([f"'{path}'", "'v'", vector, f"k := {k}", *given])
    if filter is None:
        return f"SELECT id, _distance FROM lance_vector_search({call}) ORDER BY _distance"
    call += ", prefilter := true"
    return f"SELECT id, _distance FROM lance_vector_search({call}) WHERE {filter} ORDER BY _distance"
