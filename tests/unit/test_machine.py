"""Processors and memory are detected on systems other than Linux."""

from __future__ import annotations

import os

import pytest
from lance_engine.machine import physical_memory, processors


def test_on_this_machine() -> None:
    assert 1 <= processors() <= (os.cpu_count() or 1)
    assert physical_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_without_what_linux_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "sysconf")
    assert processors() == (os.cpu_count() or 1)
    assert physical_memory() > 1 << 30
