"""Upserts of the same keys by all kinds of writers at once: no key is there twice, and no change is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.races import AT_ONCE, WRITERS, race


@pytest.mark.slow
def test_every_kind_of_writer(tmp_path: Path) -> None:
    upserts = len(WRITERS) * AT_ONCE * 4
    found = race(len(WRITERS), upserts, tmp_path)
    assert found["upserts"] == upserts
    assert (found["duplicates"], found["lost"], found["errors"]) == (0, 0, {})
