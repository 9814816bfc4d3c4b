"""What keeps the start of the command line short."""

from __future__ import annotations

import sys
from typing import Any


class _NoPandas:
    """A finder of modules that lets ``import pandas`` fail."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=name)


def leave_pandas_out() -> None:
    """Make pyarrow work without pandas in this process.

    pyarrow imports pandas, if it is installed, the first time it makes an array of a Python list, to ask
    whether the list is a Series. That takes longer than all the rest of a short command. It asks once.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)
