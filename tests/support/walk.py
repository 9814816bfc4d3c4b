"""The query on the page about the architecture, call by call: as the page lists it, and as it really runs.

``python tests/support/walk.py`` prints the steps of a query. A step is a call from one layer of `lance_sql`
to a function of another; a function counts once, where it is called first. Constructors, properties and
operators are not steps.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
MOST_STEPS = 25

_HOP = re.compile(r"^\d+\. `(?P<file>[\w./-]+)` `(?P<function>[\w.]+)`: ", re.MULTILINE)


class Hop(NamedTuple):
    """A call of `function`, by its qualified name, in `file`."""

    file: str
    function: str

    def __str__(self) -> str:
        return f"{Path(self.file).stem}.{self.function}"


def hops(name: str, page: Path = PAGE) -> list[Hop]:
    """The list on a page after the comment `name`, in order."""
    text = page.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")[1].split("\n\n")[0]
    found = [Hop(**match.groupdict()) for match in _HOP.finditer(text)]
    assert len(found) == len(text.strip().splitlines())
    return found


class Steps:
    """Records steps while `records` is set, in all threads that begin later."""

    def __init__(self) -> None:
        self.records = False
        self.found: dict[Hop, None] = {}
        threading.setprofile(self)
        sys.setprofile(self)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.records or event != "call":
            return
        layer, name = _layer(frame), frame.f_code.co_qualname
        if layer is None or "<" in name or name.rpartition(".")[2].startswith("__"):
            return
        file = str(Path(frame.f_code.co_filename).relative_to(ROOT))
        if _caller(frame) != layer and not _is_property(file, name):
            self.found.setdefault(Hop(file, name))


def _layer(frame: FrameType) -> str | None:
    """The layer of `lance_sql` that a frame belongs to; None for other code."""
    place = Path(frame.f_code.co_filename)
    if not place.is_relative_to(ROOT / "lance_sql"):
        return None
    return place.relative_to(ROOT / "lance_sql").parts[0].removesuffix(".py")


def _caller(frame: FrameType) -> str | None:
    """The layer of the nearest caller; a wrapper such as `once_per_statement` stands for its own caller."""
    back = frame.f_back
    while back is not None and (_layer(back) is None or "<locals>" in back.f_code.co_qualname):
        back = back.f_back
    return None if back is None else _layer(back)


def _is_property(file: str, name: str) -> bool:
    found: Any = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        found = vars(found)[part]
    return isinstance(found, property | functools.cached_property)


def traced() -> list[Hop]:
    """The steps of the second query of a process over one local dataset, until its rows are there."""
    import lance_sql

    steps = Steps()
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/x.lance"
        rows = range(300_000)
        lance_sql.write({"sorted": list(rows), "note": [f"n{row}" for row in rows]}, uri)
        query = f"SELECT max(note) FROM '{uri}' WHERE sorted < "
        assert lance_sql.sql(f"{query} 10000").fetchall() == [("n9999",)]
        steps.records = True
        result = lance_sql.sql(f"{query} 20000")
        assert result.fetchall() == [("n9999",)]
        steps.records = False
    return list(steps.found)


if __name__ == "__main__":
    for number, step in enumerate(traced(), 1):
        print(f"{number}. `{step.file}` `{step.function}`: ")
