"""What sessions keep about statements and datasets: a second run reads no metadata and sees every change."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine import cache
from lance_engine.scan.filters import parse_filter
from lance_engine.scan.plan import FilterPlan
from lance_engine.scan.scanner import Scanner, repeated
from lance_engine.table import seen_version

import lance_sql
from lance_sql.catalog.dataset import SqlDataset
from lance_sql.engines import table as engine_table
from lance_sql.engines.table import EngineTable
from lance_sql.text import script
from lance_sql.text.statement import Statement

QUERY = "SELECT count(*), sum(a) FROM t WHERE a > 0"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a table, which is trusted although it has just been written."""
    monkeypatch.setattr(seen_version, "_CLOCK_NS", 0)
    lance_sql.write(pa.table({"a": [1, 2, 3]}), tmp_path / "t.lance")
    pause()
    return tmp_path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The locations that are opened."""
    found: list[str] = []
    original = SqlDataset.open.__func__  # type: ignore[attr-defined]

    def noted(cls: type[SqlDataset], uri: str, *arguments: Any, **named: Any) -> Any:
        found.append(uri)
        return original(cls, uri, *arguments, **named)

    monkeypatch.setattr(SqlDataset, "open", classmethod(noted))
    return found


def pause() -> None:
    """Until the clock of the file system shows another time."""
    time.sleep(0.05)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that are listed."""
    found: list[str] = []
    original = os.scandir

    def noted(path: Any = ".") -> Any:
        found.append(str(path))
        return original(path)

    monkeypatch.setattr(os, "scandir", noted)
    return found


def test_an_unchanged_directory_is_listed_once(directory: Path, listed: list[str]) -> None:
    with lance_sql.connect(directory) as connection:
        for _ in range(3):
            assert connection.sql(QUERY).fetchall() == [(3, 6)]
        assert listed == [str(directory)]
        lance_sql.write(pa.table({"a": [7]}), directory / "new.lance")
        assert connection.sql("SELECT a FROM NEW").fetchall() == [(7,)]
        assert connection.tables() == ["new", "t"]
        (directory / "new.lance").rename(directory / "old.lance")
        assert connection.tables() == ["old", "t"]
        assert connection.sql("SELECT a FROM old").fetchall() == [(7,)]
        with pytest.raises(lance_sql.LanceError, match="new"):
            connection.sql("SELECT a FROM new").fetchall()
        connection.sql("DROP TABLE old")
        assert connection.tables() == ["t"]


def test_a_directory_that_has_just_changed_is_listed_again(tmp_path: Path, listed: list[str]) -> None:
    lance_sql.write(pa.table({"a": [1, 2, 3]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as connection:
        for number in range(3):
            assert connection.sql(QUERY).fetchall() == [(3, 6)]
            assert len(listed) == number + 1


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_the_targets_of_links_may_come_and_go(directory: Path) -> None:
    (directory / "linked.lance").symlink_to(directory / "elsewhere" / "data", target_is_directory=True)
    pause()
    with lance_sql.connect(directory) as connection:
        assert connection.tables() == ["t"]
        shutil.copytree(directory / "t.lance", directory / "elsewhere" / "data")
        pause()
        assert connection.tables() == ["linked", "t"]
        assert connection.sql("SELECT count(*) FROM linked WHERE a > 1").fetchall() == [(2,)]
        (directory / "elsewhere" / "data").rename(directory / "elsewhere" / "gone")
        assert connection.tables() == ["t"]


def test_relative_directories_follow_the_working_directory(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copytree(directory / "t.lance", tmp_path / name / "data" / f"{name}.lance")
    pause()
    monkeypatch.chdir(tmp_path / "one")
    with lance_sql.connect("data") as connection:
        for name in ("one", "two", "one"):
            monkeypatch.chdir(tmp_path / name)
            assert connection.tables() == [name]
            assert connection.sql(f"SELECT count(*) FROM {name}").fetchall() == [(3,)]


@pytest.mark.parametrize("place", ["directory", "name in a directory", "name", "path"])
def test_words_that_only_may_be_tables(directory: Path, place: str) -> None:
    """Where a table is not certain, words that are not datasets are skipped, but not the others."""
    where = directory if "directory" in place else None
    table = {"directory": "t", "path": f"'{directory / 't.lance'}'"}.get(place, "Named")
    with lance_sql.connect(where) as connection:
        if table == "Named":
            connection.register("named", lance_sql.open(directory / "t.lance"))
        if place != "path":
            assert connection.sql(f"WITH c AS (TABLE {table}) SELECT sum(a) FROM c").fetchall() == [(6,)]
        assert connection.sql(f"SELECT 3 IN (FROM {table})").fetchall() == [(True,)]


def test_an_unchanged_dataset_is_opened_once(directory: Path, opened: list[str], engine: str) -> None:
    with lance_sql.connect(directory, engine=engine) as connection:
        for _ in range(3):
            assert connection.sql(QUERY).fetchall() == [(3, 6)]
        assert len(opened) == 1


def test_every_change_is_seen_at_once(directory: Path, engine: str) -> None:
    path = directory / "t.lance"
    with (
        lance_sql.connect(directory, engine=engine) as first,
        lance_sql.connect(directory, engine=engine) as second,
    ):

        def both(expected: tuple[int, int]) -> None:
            for connection in (first, second, first):
                assert connection.sql(QUERY).fetchall() == [expected]
            pause()

        both((3, 6))
        lance_sql.write(pa.table({"a": [4]}), path, mode="append")
        both((4, 10))
        second.sql("DELETE FROM t WHERE a = 1")
        both((3, 9))
        lance_sql.write(pa.table({"a": [7, 8]}), path, mode="overwrite")
        both((2, 15))
        shutil.rmtree(path)
        with pytest.raises(lance_sql.LanceError):
            first.sql(QUERY).fetchall()
        lance_sql.write(pa.table({"a": [9]}), path)
        both((1, 9))
        second.begin()
        second.sql("INSERT INTO t VALUES (1)")
        assert second.sql(QUERY).fetchall() == [(2, 10)]
        assert first.sql(QUERY).fetchall() == [(1, 9)]
        second.rollback()
        both((1, 9))


def test_a_time_is_computed_whenever_a_statement_runs(directory: Path) -> None:
    query = f"SELECT count(*) FROM '{directory}/t.lance' AT (TIMESTAMP => now())"
    with lance_sql.connect() as connection:
        assert connection.sql(query).fetchall() == [(3,)]
        lance_sql.write(pa.table({"a": [4]}), directory / "t.lance", mode="append")
        assert connection.sql(query).fetchall() == [(4,)]


def test_a_text_is_read_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    tokenize = script.tokenize

    def noted(text: str) -> Any:
        texts.append(text)
        return tokenize(text)

    monkeypatch.setattr(script, "tokenize", noted)
    query = "SELECT max(a) AS read_once FROM t; SELECT 1 AS read_once"
    found = script.statements(query)
    found.clear()  # a list of the caller's
    assert [one.original for one in script.statements(query)] == query.split("; ")
    assert texts == [query]
    long = f"SELECT 1 AS read_twice -- {'x' * script._LONGEST_KEPT}"
    assert script.statements(long) is not script.statements(long)
    assert texts == [query, long, long]


def test_sessions_share_texts_but_no_tables(tmp_path: Path, engine: str) -> None:
    for name in ("one", "two"):
        lance_sql.write(pa.table({"a": [len(name), ord(name[0])]}), tmp_path / name / "t.lance")
    with (
        lance_sql.connect(tmp_path / "one", engine=engine) as one,
        lance_sql.connect(tmp_path / "two", engine=engine) as two,
        lance_sql.connect(engine=engine) as without,
    ):
        for _ in range(2):
            assert one.sql("SELECT max(a) FROM t").fetchall() == [(ord("o"),)]
            assert two.sql("SELECT max(a) FROM t").fetchall() == [(ord("t"),)]
            with pytest.raises(lance_sql.LanceError):
                without.sql("SELECT max(a) FROM t").fetchall()


def test_facts_of_a_statement_are_found_once() -> None:
    from lance_sql.text.statement import once_per_statement

    calls: list[str] = []

    @once_per_statement
    def length(statement: Statement) -> int | None:
        calls.append(statement.original)
        if not statement.original:
            raise ValueError("empty")
        return None if statement.original == "SELECT 1" else len(statement.original)

    found = Statement("SELECT 1")
    assert [length(found), length(found), length(Statement("SELECT 10"))] == [None, None, 9]
    assert calls == ["SELECT 1", "SELECT 10"]
    empty = Statement("")
    for _ in range(2):
        with pytest.raises(ValueError, match="empty"):
            length(empty)
    assert calls[2:] == ["", ""]


@pytest.fixture
def scanners(monkeypatch: pytest.MonkeyPatch) -> list[Scanner]:
    """The scanners that are created, not those that are used again."""
    found: list[Scanner] = []
    begin = Scanner.__init__

    def noted(self: Scanner, *arguments: Any, **named: Any) -> None:
        found.append(self)
        begin(self, *arguments, **named)

    monkeypatch.setattr(Scanner, "__init__", noted)
    return found


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    rows = 300_000
    table = pa.table(
        {"a": range(rows), "b": pa.array(range(rows), pa.decimal128(12, 2)), "c": ["x" * 20] * rows}
    )
    lance_sql.write(table, tmp_path / "t.lance")
    return tmp_path


@pytest.mark.parametrize(
    "query", ["SELECT sum(b), max(c) FROM t", "SELECT sum(b), count(*) FROM t WHERE a BETWEEN 5000 AND 5100"]
)
def test_a_second_run_prepares_no_scan(numbers: Path, scanners: list[Scanner], query: str) -> None:
    with lance_sql.connect(numbers) as connection:
        results = [connection.sql(query) for _ in range(3)]
        found = [results[0].fetchall()]
        scanners.clear()
        found += [result.fetchall() for result in results[1:]]
        assert not scanners
        assert found[1:] == found[:1] * 2
        metrics = [result.metrics for result in results]
        assert all(one is not None and len(one["scans"]) == 1 for one in metrics)
        read = [one["scans"][0]["rows_decoded"] for one in metrics if one is not None]
        assert read == read[:1] * 3
        # Another limit, condition or list of columns is another scan.
        assert len(connection.sql("SELECT a, c FROM t LIMIT 3").fetchall()) == 3
        assert len(connection.sql("SELECT a, c FROM t LIMIT 5").fetchall()) == 5
        assert connection.sql("SELECT count(c) FROM t WHERE a < 7 AND a >= 0").fetchall() == [(7,)]
        assert connection.sql("SELECT count(c), sum(a) FROM t").fetchall() == [(300_000, 44_999_850_000)]


def test_scans_run_again_see_the_memory_limit(numbers: Path) -> None:
    scanner = lance_sql.open(numbers / "t.lance").scan(["a"])
    before = cache.memory_limit()
    try:
        cache.set_memory_limit(64 << 20)
        smaller = repeated(scanner).read_ahead
        cache.set_memory_limit(128 << 20)
        assert repeated(scanner).read_ahead == 2 * smaller
        assert repeated(lance_sql.open(numbers / "t.lance").scan(["a"], read_ahead=5)).read_ahead == 5
    finally:
        cache.set_memory_limit(before)


def test_scans_of_a_condition_are_kept_as_long_as_the_condition(
    numbers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_table, "_CACHED_SCANS", 8)
    table = EngineTable(lance_sql.open(numbers / "t.lance"), "t")
    snapshot = table.dataset.snapshot
    plan = FilterPlan(parse_filter("a < 10", snapshot), snapshot)  # type: ignore[arg-type]
    for _ in range(2):
        assert table.scan(["a"], plan, run=None).count() == 10
        assert table.scan(["b"], plan, run=None).count() == 10
        assert table.scan(["a"], run=None).count() == 300_000
        assert table.scan(["a"], plan, run=None, batch_size=7).count() == 10
    assert len(table._filtered[plan]) == 2
    for names in itertools.permutations(["a", "b", "c"]):
        for count in range(1, 4):
            assert table.scan(names[:count], run=None).schema.names == list(names[:count])
    assert len(table._scans) <= 8
    del plan
    gc.collect()
    assert len(table._filtered) == 0
