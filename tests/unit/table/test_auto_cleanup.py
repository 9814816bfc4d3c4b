"""The automatic cleanup after commits, as pylance's writers run it."""

from __future__ import annotations

import datetime
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidArgumentError, VersionNotFoundError
from lance_engine.table import duration

import lance_sql

KEY = "lance.auto_cleanup."
ROW = pa.table({"a": [1]})


def versions(path: Path) -> list[int]:
    return [int(row["version"]) for row in lance_sql.open(path).inspect.versions().to_pylist()]


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"interval": "1"}, [5, 6]),
        ({"interval": "1", "older_than": "0s"}, [5, 6]),
        ({"interval": "1", "retain_versions": "3"}, [4, 5, 6]),
        ({"interval": "1", "retain_versions": "2", "older_than": "1h"}, [1, 2, 3, 4, 5, 6]),
        ({"interval": "5", "retain_versions": "1"}, [5, 6]),
        ({"interval": "100", "retain_versions": "1"}, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_versions_that_are_kept(tmp_path: Path, config: dict[str, str], kept: list[int]) -> None:
    path = tmp_path / "t.lance"
    lance_sql.write(ROW, path).update_config({KEY + name: value for name, value in config.items()})
    for _ in range(4):
        lance_sql.write(ROW, path, "append")
    assert versions(path) == kept
    assert lance.dataset(str(path)).count_rows() == 5


def test_versions_of_a_transaction_are_not_counted(tmp_path: Path) -> None:
    lance_sql.write(ROW, tmp_path / "t.lance").update_config({KEY + "interval": "1"})
    session = lance_sql.connect(tmp_path)
    for text in (
        "BEGIN",
        "INSERT INTO t VALUES (2)",
        "DELETE FROM t WHERE a = 1",
        "INSERT INTO t VALUES (3)",
    ):
        session.sql(text)
    assert versions(tmp_path / "t.lance") == [1, 2]
    session.sql("COMMIT")
    assert versions(tmp_path / "t.lance") == [2, 3]
    assert session.sql("SELECT a FROM t ORDER BY a").fetchall() == [(2,), (3,)]


@pytest.mark.parametrize(
    ("name", "value"), [("interval", "0"), ("interval", "x"), ("interval", "9" * 30), ("older_than", "soon")]
)
def test_a_failed_cleanup_is_a_warning(tmp_path: Path, name: str, value: str) -> None:
    path = tmp_path / "t.lance"
    dataset = lance_sql.write(ROW, path)
    with pytest.warns(UserWarning, match="Version 2 is committed, but its automatic cleanup failed"):
        dataset.update_config({KEY + "interval": "1", KEY + name: value})
    with pytest.warns(UserWarning, match="Version 3 is committed"):
        lance_sql.write(ROW, path, "append")
    assert versions(path) == [1, 2, 3]


def test_a_cleanup_that_loses_a_race_does_not_undo_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*given: object, **options: object) -> None:
        raise FileNotFoundError("removed by another cleanup")

    dataset = lance_sql.write(ROW, tmp_path / "t.lance")
    monkeypatch.setattr("lance_engine.table.cleanup.cleanup", lost)
    with pytest.warns(UserWarning, match="Version 2 is committed"):
        dataset.update_config({KEY + "interval": "1"})
    assert versions(tmp_path / "t.lance") == [1, 2]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("0s", 0), ("1h 30m", 5400), ("14days", 14 * 86400), ("2w", 14 * 86400), ("10ms", 0.01)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == datetime.timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "1", "1 fortnight", "-1s", "1s;", "s1", "9" * 30 + "d"])
def test_texts_that_are_not_durations(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not a duration"):
        duration(text)


def test_ages_before_the_first_year_keep_all_versions(tmp_path: Path) -> None:
    """Python has no such moments; a commit reported them as its failure."""
    dataset = lance_sql.write(ROW, tmp_path / "t.lance")
    dataset.update_config({KEY + "interval": "1", KEY + "older_than": "900000d"})
    dataset = lance_sql.write(ROW, tmp_path / "t.lance", "append")
    for age in (datetime.timedelta(days=900_000), datetime.timedelta.max):
        assert dataset.cleanup(age).versions == ()
    assert dataset.cleanup(datetime.timedelta.min).versions == (1, 2)


@pytest.mark.parametrize("moment", [datetime.datetime.min, datetime.datetime.max])
def test_moments_at_the_ends_of_time(tmp_path: Path, moment: datetime.datetime) -> None:
    lance_sql.write(ROW, tmp_path / "t.lance")
    if moment == datetime.datetime.max:
        assert lance_sql.open(tmp_path / "t.lance", as_of=moment).version == 1
    else:
        with pytest.raises(VersionNotFoundError, match="No version existed at 0001-01-01"):
            lance_sql.open(tmp_path / "t.lance", as_of=moment)
