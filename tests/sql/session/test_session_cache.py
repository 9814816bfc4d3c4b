"""`lance_sql.sql` keeps sessions for its next calls, but calls cannot see each other's state."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_sql
from lance_sql.session import session_cache
from lance_sql.session.result import QueryResult
from lance_sql.session.sql_session import SqlSession

pytestmark = pytest.mark.usefixtures("_no_kept_sessions")


@pytest.fixture
def _no_kept_sessions() -> Iterator[None]:
    session_cache._cache.clear()
    yield
    session_cache._cache.clear()


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = str(tmp_path / "t.lance")
    lance_sql.write(
        pa.table({"id": range(1000), "word": [f"w{number % 7}" for number in range(1000)]}), found
    )
    return found


def count(path: str) -> int:
    return int(lance_sql.sql(f"SELECT count(*) FROM '{path}' WHERE id >= 0").fetchall()[0][0])


def test_queries_use_one_session(path: str) -> None:
    for _ in range(3):
        assert count(path) == 1000
    assert len(session_cache._cache) == 1
    session = session_cache._cache[0]
    assert lance_sql.sql(f"WITH c AS (FROM '{path}') SELECT max(id) FROM c").fetchall() == [(999,)]
    assert list(session_cache._cache) == [session]


@pytest.mark.parametrize(
    "statement",
    [
        "SET threads = 1", "ATTACH ':memory:' AS other", "SHOW TABLES",
        "SELECT * FROM duckdb_views()", "SELECT * FROM information_schema.tables", "PRAGMA version",
        "SELECT setseed(0.5)", "CREATE TEMP VIEW v AS SELECT 1; SELECT * FROM v",
    ],
)  # fmt: skip
def test_other_statements_have_a_session_of_their_own(
    path: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert count(path) == 1000
    [session] = session_cache._cache
    used: list[SqlSession] = []
    execute = SqlSession.execute

    def noted(self: SqlSession, *arguments: Any, **named: Any) -> QueryResult:
        used.append(self)
        return execute(self, *arguments, **named)

    monkeypatch.setattr(SqlSession, "execute", noted)
    seen = lance_sql.sql(statement).arrow()
    assert used
    assert session not in used
    assert path not in str(seen.to_pylist())
    assert list(session_cache._cache) == [session]
    used.clear()
    assert count(path) == 1000
    assert used == [session]
    monkeypatch.undo()
    for name in ("other.main.x", "v"):
        with pytest.raises(lance_sql.LanceError):
            lance_sql.sql(f"SELECT * FROM {name}").fetchall()


def test_results_that_are_held_are_not_disturbed(path: str) -> None:
    query = f"SELECT id FROM '{path}' WHERE id % 2 = {{}} ORDER BY id"
    streams = [iter(lance_sql.sql(query.format(number % 2))) for number in range(7)]
    results = [lance_sql.sql(query.format(number % 2)) for number in range(7)]
    for number, result in enumerate(results):
        assert result.fetchall()[:2] == [(number % 2,), (number % 2 + 2,)]
    for number, stream in enumerate(streams):
        rows = pa.Table.from_batches(list(stream)).to_pydict()["id"]
        assert rows == list(range(number % 2, 1000, 2))
    assert len(session_cache._cache) <= session_cache._MOST


def test_variables_are_those_of_the_call(path: str) -> None:
    for value in (1, 2, 3):
        mine = pa.table({"a": [value]})
        assert lance_sql.sql(f"SELECT a, count(*) FROM mine, '{path}' GROUP BY a").fetchall() == [
            (value, 1000)
        ]
    del mine
    with pytest.raises(lance_sql.LanceError, match="mine"):
        lance_sql.sql(f"SELECT a FROM mine, '{path}'").fetchall()


def test_the_newest_version_is_read(path: str) -> None:
    assert count(path) == 1000
    lance_sql.sql(f"DELETE FROM '{path}' WHERE id < 10")
    assert count(path) == 990
    shutil.rmtree(path)
    with pytest.raises(lance_sql.LanceError):
        count(path)
    lance_sql.write(pa.table({"id": [1, 2, 3]}), path)
    assert count(path) == 3


def test_relative_paths_follow_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in (1, 2):
        (tmp_path / str(rows)).mkdir()
        monkeypatch.chdir(tmp_path / str(rows))
        lance_sql.write(pa.table({"id": range(rows)}), "t.lance")
    for rows in (1, 2, 1):
        monkeypatch.chdir(tmp_path / str(rows))
        assert count("t.lance") == rows
    # A copy has the same manifest, and must not be mistaken for the original.
    shutil.copytree(tmp_path / "1", tmp_path / "copy")
    shutil.rmtree(tmp_path / "1")
    monkeypatch.chdir(tmp_path / "copy")
    assert lance_sql.sql("SELECT id FROM 't.lance' WHERE id = 0").fetchall() == [(0,)]


def test_errors_do_no_harm(path: str) -> None:
    for _ in range(3):
        with pytest.raises(lance_sql.LanceError):
            lance_sql.sql(f"SELECT missing FROM '{path}'").fetchall()
        with pytest.raises(lance_sql.LanceError):
            lance_sql.sql(f"SELECT word::INTEGER FROM '{path}' WHERE id >= 0").fetchall()
        assert count(path) == 1000


def test_what_is_kept_is_bounded(path: str, tmp_path: Path) -> None:
    for number in range(2 * session_cache._MOST_DATASETS):
        copy = str(tmp_path / f"{number}.lance")
        shutil.copytree(path, copy)
        assert count(copy) == 1000
    gc.collect()
    assert sum(session.catalog.opened for session in session_cache._cache) < session_cache._MOST_DATASETS


def test_datasets_of_other_calls_are_not_opened(path: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.lance")
    shutil.copytree(path, other)
    assert count(other) == 1000
    for manifest in Path(other, "_versions").iterdir():
        manifest.write_bytes(b"damaged")
    assert lance_sql.sql(f"WITH c AS (FROM '{path}') SELECT max(id) FROM c").fetchall() == [(999,)]


def test_threads(path: str) -> None:
    found: list[list[tuple[int]]] = []

    def run(number: int) -> None:
        for _ in range(10):
            query = f"SELECT max(id) FROM '{path}' WHERE id < ?"
            found.append(lance_sql.sql(query, params=[number]).fetchall())

    threads = [threading.Thread(target=run, args=(100 * number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [[(100 * number - 1,)] for number in range(1, 7) for _ in range(10)]
    assert len(session_cache._cache) <= session_cache._MOST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Forking is a matter of POSIX systems")
def test_a_forked_process_queries_and_ends(path: str) -> None:
    code = f"""if True:
        import os, sys, lance_sql
        query = "SELECT count(*) FROM '{path}' WHERE id >= 5"
        assert lance_sql.sql(query).fetchall() == [(995,)]
        child = os.fork()
        if child == 0:
            sys.exit(lance_sql.sql("SELECT 42").fetchall() != [(42,)])
        _, status = os.waitpid(child, 0)
        assert lance_sql.sql(query).fetchall() == [(995,)]
        sys.exit(status != 0)
    """
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0


def test_sessions_leave_no_threads(path: str) -> None:
    def run() -> None:
        lance_sql.sql("SHOW TABLES").fetchall()
        gc.collect()

    run()
    before = {thread.ident for thread in threading.enumerate()}
    for _ in range(5):
        run()
    added = [thread for thread in threading.enumerate() if thread.ident not in before]
    for thread in added[1:]:  # the last session may still be alive
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("end", ["", "result = lance_sql.sql('SELECT 8')", "import sys; sys.exit(0)"])
def test_a_program_ends_in_silence(end: str) -> None:
    code = f"import duckdb, lance_sql\nprint(lance_sql.sql('SELECT 7').fetchall())\n{end}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert (run.returncode, run.stdout, run.stderr) == (0, "[(7,)]\n", "")
