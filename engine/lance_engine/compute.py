"""pyarrow's compute functions, imported when one is first used: that takes a tenth of a first query's time.

Modules that a query imports, but perhaps does not use, take the functions from here.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from lance_engine.interrupts import load

    function = globals()[name] = getattr(load("pyarrow.compute"), name)
    return function
