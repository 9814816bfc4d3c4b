"""Random operations by us and by pylance on one dataset, checked against a table in memory after each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from random_operations import take_turns

if TYPE_CHECKING:
    from conftest import ObjectStore

OPERATIONS, MANY_OPERATIONS = 25, 200


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("version", "stable", "seed"), [("2.1", False, 1), ("2.1", True, 2), ("2.0", False, 3), ("2.2", True, 4)]
)
def test_taking_turns(tmp_path: Path, version: str, stable: bool, seed: int) -> None:
    take_turns(str(tmp_path / "t.lance"), version, stable, seed, OPERATIONS)


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_taking_many_turns(tmp_path: Path, stable: bool, seed: int) -> None:
    take_turns(str(tmp_path / "t.lance"), "2.1", stable, seed, MANY_OPERATIONS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("kind", ["s3", "ddb"])
def test_taking_many_turns_on_an_object_store(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, kind: str, stable: bool
) -> None:
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    uri = getattr(object_store, kind)("t.lance")
    take_turns(uri, "2.1", stable, 14, MANY_OPERATIONS)
