"""The query on the page about the architecture, call by call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
MOST_HOPS = 25

_HOP = re.compile(r"^\d+\. `(?P<file>[\w./]+)` `(?P<function>[\w.]+)`: ", re.MULTILINE)


class Hop(NamedTuple):
    """A call of `function`, by its qualified name, in `file`."""

    file: str
    function: str

    def __str__(self) -> str:
        return f"{Path(self.file).stem}.{self.function}"


def hops() -> list[Hop]:
    """The hops, in order."""
    text = PAGE.read_text(encoding="utf-8").split("<!-- the walk -->")[1].split("\n\n")[0]
    found = [Hop(**match.groupdict()) for match in _HOP.finditer(text)]
    assert len(found) == len(text.strip().splitlines())
    return found
