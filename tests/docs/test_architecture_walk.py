"""A query takes the steps that the page about the architecture lists."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from walk import ROOT, Hop, hops

import lance_sql
from lance_sql.session import session_cache


def module_of(hop: Hop) -> Any:
    name = hop.file.removeprefix("engine/").removesuffix(".py").replace("/", ".")
    return importlib.import_module(name)


def replace_everywhere(monkeypatch: pytest.MonkeyPatch, real: Any, recording: Any) -> None:
    """Put `recording` wherever a module of ours holds the function `real`."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("lance_sql", "lance_engine")):
            for key, value in list(vars(module).items()):
                if value is real:
                    monkeypatch.setattr(module, key, recording)


def test_the_page_lists_every_step():
    """If this fails: ``python tests/support/walk.py`` prints the steps; fewer are better."""
    script = ROOT / "tests" / "support" / "walk.py"
    printed = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    listed = [f"{number}. `{hop.file}` `{hop.function}`:" for number, hop in enumerate(hops("the walk"), 1)]
    assert [line.strip() for line in printed.splitlines()] == listed


def test_the_scan_is_called_in_this_order(tmp_path, monkeypatch):
    uri = str(tmp_path / "x.lance")
    rows = 300_000
    table = pa.table({"sorted": range(rows), "note": [f"n{i}" for i in range(rows)], "value": [0.5] * rows})
    lance_sql.write(table, uri)
    text = f"SELECT max(note) FROM '{uri}' WHERE sorted < 20000"
    lance_sql.sql(text).arrow()  # what is imported at first use is there now

    session_cache._cache.clear()  # the walk is that of a new session

    calls: list[Hop] = []

    def recorded(hop: Hop, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(hop)
            return real(*arguments, **options)

        return call

    walk = [hop for hop in hops("the scan") if hop.file.endswith(".py")]
    for hop in dict.fromkeys(walk):
        owner, _, name = hop.function.rpartition(".")
        module = module_of(hop)
        if owner:
            kind = getattr(module, owner)
            monkeypatch.setattr(kind, name, recorded(hop, getattr(kind, name)))
        else:
            real = getattr(module, name)
            replace_everywhere(monkeypatch, real, recorded(hop, real))

    assert lance_sql.sql(text).fetchall() == [("n9999",)]
    coming = iter(calls)
    missing = [hop for hop in walk if hop not in coming]  # each is looked for behind the one before
    assert missing == []
    planned = Hop("engine/lance_engine/scan/plan.py", "FilterPlan.__init__")
    assert calls.count(planned) == 1  # by the decision, for the scan as well
