"""Merges that only insert, of the same keys at the same time: each key is there once."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lance_sql

if TYPE_CHECKING:
    from conftest import ObjectStore

WRITERS, TURNS, KEYS = 2, 3, 5
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def insert(paths: list[str], writer: int, together: Any) -> None:
    """Insert the keys of each turn into each table, when all writers are ready."""
    for turn in range(TURNS):
        keys = range(turn * KEYS, turn * KEYS + KEYS + 1)  # the last one is the first of the next turn
        for path in paths:
            together.wait(60)
            if (turn + writer) % 2:
                rows = pa.table({"id": keys, "v": [writer] * len(keys)}, schema=SCHEMA)
                lance_sql.open(path).merge(rows, "id").when_not_matched_insert_all().execute()
            else:
                source = (
                    f"(SELECT range AS id, {writer}::BIGINT AS v FROM range({keys.start}, {keys.stop})) s"
                )
                with lance_sql.connect() as session:
                    session.sql(
                        f"MERGE INTO '{path}' t USING {source} ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
                    )


@pytest.fixture(params=["addresses", pytest.param("stable row ids", marks=pytest.mark.slow)])
def paths(request: pytest.FixtureRequest, tmp_path: Path, object_store: ObjectStore) -> list[str]:
    """An empty table in a directory, and one in a bucket."""
    places = [str(tmp_path / "t.lance"), object_store.s3("t.lance")]
    for place in places:
        lance_sql.write(SCHEMA.empty_table(), place, stable_row_ids=request.param == "stable row ids")
    return places


def check(paths: list[str]) -> None:
    for path in paths:
        rows = lance_sql.open(path).scan().to_table()
        assert sorted(rows["id"].to_pylist()) == list(range(TURNS * KEYS + 1))
        assert set(rows["v"].to_pylist()) <= set(range(WRITERS))


def test_threads(paths: list[str]) -> None:
    together = threading.Barrier(WRITERS)
    errors: list[BaseException] = []

    def run(writer: int) -> None:
        try:
            insert(paths, writer, together)
        except BaseException as error:  # the main thread raises it
            together.abort()
            errors.append(error)

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    check(paths)


@pytest.mark.sampled(1)
def test_processes(paths: list[str]) -> None:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(WRITERS)
    processes = [context.Process(target=insert, args=(paths, writer, together)) for writer in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * WRITERS
    check(paths)
