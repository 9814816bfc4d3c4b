"""Names of an interface, whose modules are imported at first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from lance_engine.interrupts import load


def lazy_names(interface: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """``__getattr__`` of the module `interface`.

    `modules` has the names of each module of the engine, as `name`, or `name=other` if `interface` calls it
    `other`. Nothing is imported before it is asked for, so that an interface costs no more than its parts.
    """

    def get(name: str) -> Any:
        for module, names in modules.items():
            for entry in names.split():
                own, _, other = entry.partition("=")
                if (other or own) == name:
                    value = getattr(load(f"lance_engine.{module}"), own)
                    setattr(sys.modules[interface], name, value)
                    return value
        raise AttributeError(f"module {interface!r} has no attribute {name!r}")

    return get
