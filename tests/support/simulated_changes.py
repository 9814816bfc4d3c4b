"""Changes of one small dataset, for simulations of concurrent writers: what each does, and the result."""

from __future__ import annotations

import dataclasses
import datetime
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import combinations_with_replacement, permutations
from typing import Any, Final, NamedTuple
from unittest import mock

import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    CommitConflictError,
    IncompatibleChangeError,
    LanceError,
    SchemaMismatchError,
)
from lance_engine.io import MemoryStore
from lance_engine.table.versions import list_versions, open_snapshot
from lance_engine.write.dataset import write_dataset
from pyspark.sql.pandas.types import from_arrow_schema
from simulated_store import FAULTS, Run, Simulation, copied

import lance_sql
from lance_sql.catalog.dataset import SqlDataset
from lance_sql.spark.job import WriteJob
from lance_sql.spark.options import Options

Change = Callable[[DatasetVersion], object]


def rows(*ids: int, b: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "b": pa.array([b] * len(ids), pa.int64())})


def _append(ids: Sequence[int]) -> Change:
    return lambda ds: write_dataset(rows(*ids, b=7), ds.snapshot.store, "append")


def _upsert(ids: Sequence[int], b: int) -> Change:
    return lambda ds: (
        ds.merge(rows(*ids, b=b), "id").when_matched_update_all().when_not_matched_insert_all().execute()
    )


def _statement(text: str) -> Change:
    """A statement of a session of its own, over the table ``t``."""

    def run(dataset: DatasetVersion) -> None:
        with lance_sql.connect() as session:
            session.register("t", SqlDataset(dataset.snapshot))
            session.sql(text)

    return run


def _replace_rows(dataset: DatasetVersion) -> None:
    """INSERT OVERWRITE in a catalog of Spark: other rows, under the same definition."""
    options = Options.parse({"path": "t", "planner.keeps_schema": "true"})
    try:
        job = WriteJob(
            dataclasses.replace(options, path=dataset.snapshot.store),
            from_arrow_schema(dataset.schema),
            True,
        )
    except SchemaMismatchError as error:  # Spark analyzed the statement with other columns
        raise CommitConflictError("The columns changed since the statement was analyzed") from error
    job.require_kept_schema(dataset.snapshot)
    columns = {field.name: pa.array([800, 801], field.type) for field in dataset.schema}
    job.publish([job.write([pa.record_batch(columns)])])


def _replace_where(dataset: DatasetVersion) -> None:
    """INSERT INTO t REPLACE WHERE id < 2 in a catalog of Spark."""
    filters = json.dumps([{"kind": "LessThan", "column": ["id"], "value": ["integer", "2"]}])
    told = {"version": dataset.version, "filters": filters}
    options = Options.parse({"path": "t", "planner.replaced_rows": json.dumps(told)})
    job = WriteJob(
        dataclasses.replace(options, path=dataset.snapshot.store), from_arrow_schema(dataset.schema), False
    )
    columns = {field.name: pa.array([1, 700], field.type) for field in dataset.schema}
    job.publish([job.write([pa.record_batch(columns)])])


#: The changes, by name.
CHANGES: dict[str, Change] = {
    "append": _append([100, 101]),
    "append the same": _append([100, 300]),
    "overwrite": lambda ds: write_dataset(rows(900, 901), ds.snapshot.store, "overwrite"),
    "delete": lambda ds: ds.delete("id < 2"),
    "delete others": lambda ds: ds.delete("id = 1 OR id = 7"),
    "delete a fragment": lambda ds: ds.delete("id >= 5"),
    "update": lambda ds: ds.update({"b": "b + 10"}, "id IN (1, 2)"),
    "update all": lambda ds: ds.update({"b": "b + 1"}),
    "replace column": lambda ds: ds.replace_columns({"b": "b + 100"}),
    "upsert": _upsert([3, 100], 20),
    "insert new keys": lambda ds: (
        ds.merge(rows(3, 100, 200, b=30), "id").when_not_matched_insert_all().execute()
    ),
    "insert new keys again": lambda ds: (
        ds.merge(rows(200, 201, b=40), "id").when_not_matched_insert_all().execute()
    ),
    "update keys": lambda ds: ds.merge(rows(4, 5, b=50), "id").when_matched_update_all().execute(),
    "MERGE that inserts": _statement(
        "MERGE INTO t USING (VALUES (3, 60), (200, 60)) s(id, b) ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, b) VALUES (s.id, s.b)"
    ),
    "MERGE": _statement(
        "MERGE INTO t USING (VALUES (3, 70), (200, 70)) s(id, b) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT (id, b) VALUES (s.id, s.b)"
    ),
    "transaction": _statement(
        "BEGIN; UPDATE t SET b = b + 300 WHERE id = 1; INSERT INTO t (id, b) VALUES (200, 80); "
        "DELETE FROM t WHERE id = 6; COMMIT"
    ),
    "UPDATE": _statement("UPDATE t SET b = b + 1000 WHERE id IN (1, 6)"),
    "DELETE": _statement("DELETE FROM t WHERE b = 10 OR id = 6"),
    "compact": lambda ds: ds.compact(),
    "create index": lambda ds: ds.create_index("id", "btree", name="second"),
    "optimize index": lambda ds: ds.optimize_indices(),
    "drop index": lambda ds: ds.drop_index("b_idx"),
    "add column": lambda ds: ds.add_columns({"c": "id * 2"}),
    "drop column": lambda ds: ds.drop_columns(["b"]),
    "rename column": lambda ds: ds.rename_column("b", "renamed"),
    "alter column": lambda ds: ds.alter_column("b", type=pa.float64()),
    "restore": lambda ds: ds.restore(1),
    "replace rows": _replace_rows,
    "replace rows of a condition": _replace_where,
    "add check": lambda ds: ds.add_check("id < 1000", "small"),
    "add key": lambda ds: ds.add_key(["id"]),
    "config": lambda ds: ds.update_config({"key": "value"}),
    "tag": lambda ds: ds.tags.create("tag", ds.version),
    "branch": lambda ds: ds.branches.create("branch", ds.version),
    "clean up": lambda ds: ds.cleanup(datetime.timedelta(0)),
}
#: Changes that remove files of old versions: others may find that theirs is gone.
CLEANING = frozenset(["clean up"])
#: Changes of one kind meet in the same keys, rows, columns, files or references: races are more likely.
KINDS: Final = (
    ("insert new keys", "insert new keys again", "MERGE that inserts", "MERGE", "upsert"),
    (
        "delete",
        "delete others",
        "delete a fragment",
        "DELETE",
        "update",
        "update all",
        "UPDATE",
        "update keys",
        "transaction",
    ),
    ("compact", "append", "append the same", "create index", "optimize index", "drop index"),
    ("replace column", "add column", "drop column", "rename column", "alter column"),
    ("overwrite", "restore", "config", "tag", "branch", "clean up"),
    ("replace rows", "replace rows of a condition", "add check", "add key"),
)


class Exhausted(NamedTuple):
    """Changes of which all schedules run up to a number of switches, with at most one fault."""

    names: tuple[str, ...]
    stable: bool
    faults: tuple[str, ...]
    switches: int


def _exhausted() -> list[Exhausted]:
    """All pairs of changes, and triples: ten of each kind and others. Those with few schedules first."""
    chance = random.Random(0)
    pairs = list(combinations_with_replacement(CHANGES, 2))
    triples = [tuple(chance.choice(kind) for _ in range(3)) for kind in KINDS for _ in range(10)]
    triples += [tuple(chance.sample(list(CHANGES), 3)) for _ in range(30)]
    names = [*pairs, *triples]
    found = [Exhausted(each, stable, (), 1) for stable in (False, True) for each in names]
    found += [Exhausted(each, False, FAULTS, 0) for each in names]
    # With a clean-up, each call of each writer is a scheduling point.
    few = [each for each in names if not CLEANING.intersection(each)]
    return [*found, *(Exhausted(each, False, (), 2) for each in few)]


#: What `make differential` exhausts.
EXHAUSTED: Final = _exhausted()


def drawn(seed: int) -> tuple[str, ...]:
    """Two or three changes: of one kind for every second seed, each kind in its turn, and otherwise any."""
    turn, mixed = divmod(seed, 2)
    among = tuple(CHANGES) if mixed else KINDS[turn % len(KINDS)]
    chance = random.Random(seed)
    return tuple(chance.choice(among) for _ in range(chance.choice([2, 2, 3])))


@cache
def start(stable: bool) -> MemoryStore:
    """Two fragments of five rows, one with a deleted row, and an index over the first."""
    store = MemoryStore("simulated")
    write_dataset(rows(*range(5)), store, "create", stable_row_ids=stable)
    dataset = DatasetVersion(open_snapshot(store)).create_index("b", "btree", name="b_idx")
    write_dataset(rows(*range(5, 11), b=1), store, "append")
    DatasetVersion(open_snapshot(store)).delete("id = 10")
    assert dataset.version == 2
    return store


def latest(store: Any) -> DatasetVersion:
    return DatasetVersion(open_snapshot(store))


State = tuple[Any, ...]


def state(store: MemoryStore) -> State:
    """What users see: rows, columns, indices, tags, branches, configuration. All of it must be readable."""
    dataset = latest(store)
    table = dataset.scan().to_table()
    names = sorted(dataset.inspect.indices()["name"].to_pylist())
    tags = {name: content(open_tagged(store, number)) for name, number in tag_versions(dataset).items()}
    branches = sorted(branch.name for branch in dataset.branches.list())
    config = sorted(dataset.snapshot.manifest.config.items())
    definition = f"{table.schema} {dataset.inspect.constraints().to_pylist()}"
    return content(dataset), definition, tuple(names), str(tags), tuple(branches), tuple(config)


def tag_versions(dataset: DatasetVersion) -> dict[str, int]:
    return {tag.name: tag.version for tag in dataset.tags.list()}


def open_tagged(store: MemoryStore, version: int) -> DatasetVersion:
    return DatasetVersion(open_snapshot(store, version))


def content(dataset: DatasetVersion) -> str:
    """The rows in the order of their ids."""
    return str(sorted(map(str, dataset.scan().to_table().to_pylist())))


def check_sound(store: MemoryStore) -> None:
    """Every version opens and has the rows it promises; indices, row ids and files of the newest agree."""
    versions = list_versions(store)
    assert versions is not None
    for number in versions.versions:
        dataset = open_tagged(store, number)
        assert dataset.scan().to_table().num_rows == dataset.count_rows()
    dataset = latest(store)
    problems = dataset.verify(values=True).to_pylist()
    assert not problems, problems
    found = dataset.scan(["id", "_rowid"]).to_table()
    ids = found["_rowid"].to_pylist()
    assert len(set(ids)) == len(ids), "a row id stands for two rows"
    assert dataset.take(ids, ["id"])["id"].to_pylist() == found["id"].to_pylist()
    for condition in ("id IN (0, 1, 3, 7, 100, 200)", "b IN (0, 1, 7, 10, 11, 20, 30, 50)"):
        if condition.split()[0] in dataset.schema.names:
            indexed, plain = (
                dataset.scan(["id"], condition, indices=used).to_table() for used in (True, False)
            )
            assert sorted(indexed["id"].to_pylist()) == sorted(plain["id"].to_pylist()), condition


@cache
def serial(names: tuple[str, ...], stable: bool) -> State | None:
    """The state after these changes one after the other; None if one of them fails in this order."""
    store = copied(start(stable))
    for name in names:
        try:
            CHANGES[name](latest(store))
        except LanceError:
            return None
    return state(store)


def explain(run: Run, names: Sequence[str], stable: bool) -> None:
    """AssertionError unless some order of the changes that were acknowledged leads to the result.

    Changes with an unknown outcome may be part of it; those that were refused are not.
    """
    check_sound(run.files)
    by_kind: dict[str, list[str]] = {"done": [], "unknown": [], "refused": [], "failed": []}
    for name, outcome in zip(names, run.outcomes, strict=True):
        by_kind[outcome.kind].append(name)
        assert outcome.kind != "failed", f"{name}: {outcome.error!r}"
        if outcome.kind == "refused" and not CLEANING.intersection(names):
            allowed = (CommitConflictError, IncompatibleChangeError)
            legal = isinstance(outcome.error, allowed) or _fails_serially(name, names, stable)
            assert legal, f"{name}: {outcome.error!r}"
    found = state(run.files)
    for extra in _subsets(by_kind["unknown"]):
        for order in permutations([*by_kind["done"], *extra]):
            if serial(tuple(order), stable) == found:
                return
    raise AssertionError(f"no order of {by_kind['done']} (and {by_kind['unknown']}) gives {found}")


def _fails_serially(name: str, names: Sequence[str], stable: bool) -> bool:
    """Whether a change fails after some of the others, without any concurrency."""
    others = list(names)
    others.remove(name)
    return any(
        serial(tuple(before), stable) is not None and serial((*before, name), stable) is None
        for some in _subsets(others)
        for before in permutations(some)
    )


def _subsets(names: Sequence[str]) -> Iterator[list[str]]:
    for bits in range(1 << len(names)):
        yield [name for place, name in enumerate(names) if bits >> place & 1]


def simulation(names: Sequence[str], stable: bool, faults: Sequence[str] = ()) -> Simulation:
    """Writers that each open the newest version, and then make one of the changes `names`."""
    base = start(stable)

    def writer(name: str) -> Callable[[Any], object]:
        return lambda store: CHANGES[name](latest(store))

    cleaning = bool(CLEANING.intersection(names))
    return Simulation(base, [writer(name) for name in names], sees_all=cleaning, faults=faults)


@contextmanager
def without_pauses() -> Iterator[None]:
    """Nobody waits before trying again, and random numbers are the same in each run."""
    with mock.patch("time.sleep", return_value=None):
        random.seed(1)
        yield
