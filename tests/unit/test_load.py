"""Modules are imported without garbage collection, which goes on as before."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest
from lance_engine.interrupts import load


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    name = f"loaded_{len(request.node.name)}"
    (tmp_path / f"{name}.py").write_text("import gc\ncollects = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("collects", [True, False])
def test_a_module_is_imported_without_collections(module: str, collects: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        assert not load(module).collects
        assert gc.isenabled() == collects
        assert load(module) is sys.modules[module]
    finally:
        (gc.enable if before else gc.disable)()


def test_an_error_while_a_module_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_wrongly.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        load("loaded_wrongly")
    assert gc.isenabled()
