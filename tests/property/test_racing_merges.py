"""Merges that meet other commits: no key is inserted twice, no row is lost."""

from __future__ import annotations

import datetime
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError, IncompatibleChangeError
from lance_engine.table import commit as commits

import lance_sql

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
#: The keys that are merged, and those of them that the table has at the start.
MERGED, PRESENT = range(2, 8), range(4)
Rows = list[tuple[int, int]]
Change = Callable[[str], Any]


def rows_of(ids: Any, value: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(list(ids))}, schema=SCHEMA)


SOURCE = "(SELECT range AS id, 7::BIGINT AS v FROM range(2, 8)) s"


def statement(table: str, matched: str = "") -> str:
    return (
        f"MERGE INTO {table} t USING {SOURCE} ON t.id = s.id {matched} "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
    )


def in_session(*texts: str) -> Change:
    def run(path: str) -> None:
        with lance_sql.connect(Path(path).parent) as session:
            for text in texts:
                session.sql(text)

    return run


MERGES: dict[str, Change] = {
    "method": lambda path: (
        lance_sql.open(path).merge(rows_of(MERGED, 7), on="id").when_not_matched_insert_all().execute()
    ),
    "method, upsert": lambda path: (
        lance_sql.open(path)
        .merge(rows_of(MERGED, 7), on="id")
        .when_matched_update({"v": "target.v"})
        .when_not_matched_insert_all()
        .execute()
    ),
    "method, empty matched part": lambda path: (
        lance_sql.open(path)
        .merge(rows_of(MERGED, 7), on="id")
        .when_matched_delete("target.v = 1000")
        .when_not_matched_insert_all()
        .execute()
    ),
    "statement": in_session(statement("t")),
    "statement, upsert": in_session(statement("t", "WHEN MATCHED THEN UPDATE SET v = t.v")),
    "statement, empty matched part": in_session(
        statement(
            "t", "WHEN MATCHED AND t.v = 1000 THEN DELETE WHEN MATCHED AND t.v = 1000 THEN UPDATE SET v = 1"
        )
    ),
    "transaction": in_session("BEGIN", statement("t"), "COMMIT"),
    "transaction, two merges": in_session("BEGIN", statement("t"), statement("t"), "COMMIT"),
    "transaction, other rows": in_session(
        "BEGIN", statement("t"), "INSERT INTO t (id, v) VALUES (50, 7)", "COMMIT"
    ),
    "transaction, two tables": in_session(
        "BEGIN", "INSERT INTO other VALUES (1, 1)", statement("t"), statement("other"), "COMMIT"
    ),
}


OTHERS: dict[str, Change] = {
    "append": lambda path: lance_sql.write(rows_of([5, 30], 3), path, mode="append"),
    "append by pylance": lambda path: lance.write_dataset(rows_of([5, 30], 3), path, mode="append"),
    "insert": in_session("INSERT INTO t (id, v) VALUES (5, 3), (30, 3)"),
    "insert in a transaction": in_session("BEGIN", "INSERT INTO t (id, v) VALUES (5, 3)", "COMMIT"),
    "merge": in_session(statement("t").replace("7::", "3::")),
    "merge in a transaction": in_session("BEGIN", statement("t").replace("7::", "3::"), "COMMIT"),
    "merge method": lambda path: (
        lance_sql.open(path).merge(rows_of([5, 30], 3), on="id").when_not_matched_insert_all().execute()
    ),
    "merge by pylance": lambda path: (
        lance.dataset(path).merge_insert("id").when_not_matched_insert_all().execute(rows_of([5, 30], 3))
    ),
    "upsert by pylance": lambda path: (
        lance.dataset(path)
        .merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(rows_of([2, 5], 3))
    ),
    "update": lambda path: lance_sql.open(path).update({"v": "9"}, "id = 1"),
    "update of a merged row": lambda path: lance_sql.open(path).update({"v": "9"}, "id = 2"),
    "update of a key": lambda path: lance_sql.open(path).update({"id": "5"}, "id = 1"),
    "update of a key by pylance": lambda path: lance.dataset(path).update({"id": "5"}, "id = 1"),
    "update of nothing": lambda path: lance_sql.open(path).update({"v": "9"}, "id = 99"),
    "delete": lambda path: lance_sql.open(path).delete("id = 1"),
    "delete of a merged row": lambda path: lance_sql.open(path).delete("id = 2"),
    "delete of all": lambda path: lance_sql.open(path).truncate(),
    "delete of nothing": lambda path: lance_sql.open(path).delete("id = 99"),
    "delete by pylance": lambda path: lance.dataset(path).delete("id = 0"),
    "compact": lambda path: lance_sql.open(path).compact(),
    "compact by pylance": lambda path: lance.dataset(path).optimize.compact_files(),
    "index": lambda path: lance_sql.open(path).create_index("id"),
    "add column": lambda path: lance_sql.open(path).add_columns({"w": "id + 1"}),
    "drop column": lambda path: lance.dataset(path).drop_columns(["extra"]),
    "rename column": lambda path: lance.dataset(path).alter_columns({"path": "extra", "name": "e"}),
    "config": lambda path: lance.dataset(path).update_config({"a": "b"}),
    "schema metadata": lambda path: lance.dataset(path).update_schema_metadata({"a": "b"}),
    "overwrite": lambda path: lance_sql.write(rows_of([5, 30], 3), path, mode="overwrite"),
    "restore": lambda path: lance_sql.open(path, 1).restore(),
    "cleanup": lambda path: (
        lance_sql.open(path).delete("id = 1"),
        lance_sql.open(path).delete("id = 0"),
        lance.dataset(path).cleanup_old_versions(datetime.timedelta(0)),
    ),
}
#: After these the merge no longer applies, as the documentation of concurrent writers says.
ENDS = ("overwrite", "restore")
#: The merges that are not left to the slow tests.
FEW = ("method", "statement", "statement, upsert", "transaction")


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Change], None]]:
    """Sets a change that is committed between the first plan of the next commit and this commit."""
    run, waiting = commits._Attempt.run, []

    def after_the_other(attempt: Any) -> Any:
        if waiting:
            waiting.pop()()
        return run(attempt)

    monkeypatch.setattr(commits._Attempt, "run", after_the_other)
    yield waiting.append
    assert not waiting, "nothing was committed"


def create(path: str, *, stable: bool) -> None:
    start = pa.table({"id": PRESENT, "v": [1] * 4, "extra": [0] * 4})
    lance_sql.write(start.schema.empty_table(), path, stable_row_ids=stable)
    lance_sql.write(start, path, mode="append", max_rows_per_file=3)
    lance_sql.write(rows_of([1], 0), str(Path(path).parent / "other.lance"))


def model(path: str) -> Rows:
    found = lance.dataset(path).to_table(columns=["id", "v"])
    return sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def merged(rows: Rows, *, more: bool) -> Rows:
    known = {key for key, _ in rows}
    return sorted([*rows, *((key, 7) for key in MERGED if key not in known), *([(50, 7)] if more else [])])


@pytest.mark.sampled(12)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    "merge", [pytest.param(merge, marks=() if merge in FEW else pytest.mark.slow) for merge in MERGES]
)
def test_another_commit_comes_first(
    tmp_path: Path, meet: Callable[[Any], None], merge: str, other: str
) -> None:
    stable = random.Random(merge + other).random() < 0.5
    path, twin = str(tmp_path / "t.lance"), str(tmp_path / "twin" / "t.lance")
    for place in (path, twin):
        Path(place).parent.mkdir(exist_ok=True)
        create(place, stable=stable)
    before = model(path)
    OTHERS[other](twin)
    after_other = model(twin)
    meet(lambda: OTHERS[other](path))
    try:
        MERGES[merge](path)
    except IncompatibleChangeError:
        assert other in ENDS
        assert model(path) == after_other
        return
    except CommitConflictError:
        # A transaction is not repeated; neither is what was based on a version that is gone.
        assert merge.startswith("transaction")
        assert model(path) == after_other
        return
    more = merge == "transaction, other rows"
    gone = {key for key, _ in before} - {key for key, _ in after_other}
    orders = [merged(after_other, more=more)]
    if other.startswith("delete"):  # the merge counts as the first of both
        orders.append([row for row in merged(before, more=more) if row[0] not in gone])
    found = model(path)
    assert found in orders
    assert len({key for key, _ in found}) == len(found)
    lance.dataset(path).validate()
    ours = lance_sql.open(path)
    assert sorted(ours.scan(["id"]).to_table()["id"].to_pylist()) == [key for key, _ in found]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_racing_writers_insert_each_key_once(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "t.lance")
    create(path, stable=stable)
    errors: list[BaseException] = []
    taken: list[int] = []

    def insert(worker: int) -> None:
        rng = random.Random(worker)
        for turn in range(4):
            keys = sorted(rng.sample(range(100, 130), 8))
            source = f"(SELECT unnest({keys})::BIGINT AS id, {worker}::BIGINT AS v) s"
            text = statement("t").replace(SOURCE, source)
            for _ in range(20):
                try:
                    if turn % 2:
                        data = rows_of(keys, worker)
                        lance_sql.open(path).merge(data, on="id").when_not_matched_insert_all().execute()
                    else:
                        in_session(*(["BEGIN", text, "COMMIT"] if worker == 1 else [text]))(path)
                    taken.extend(keys)
                    break
                except CommitConflictError:
                    continue

    def disturb() -> None:
        for turn in range(4):
            for _ in range(20):
                try:
                    dataset = lance_sql.open(path)
                    if turn == 0:
                        dataset.delete("id = 0")
                    elif turn == 1:
                        dataset.compact()
                    else:
                        dataset.update({"v": "v + 1"}, "id = 1")
                    break
                except CommitConflictError:
                    continue

    def run(work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:  # the main thread raises it
            errors.append(error)

    threads = [threading.Thread(target=run, args=(insert, worker)) for worker in range(3)]
    threads.append(threading.Thread(target=run, args=(disturb,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    found = model(path)
    assert [key for key, _ in found] == sorted({1, 2, 3, *taken})
    assert dict(found)[1] == 3
    lance.dataset(path).validate()
