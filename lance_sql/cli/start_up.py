"""Start-up of the command line: fast imports and readable output."""

from __future__ import annotations

import io
import sys
from typing import Any

# Modules that pyarrow imports only to check for a Series or a relativedelta.
_LEFT_OUT = ("pandas", "dateutil")


class _LeftOut:
    """An import finder that makes the imports of some modules fail."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in _LEFT_OUT:
            raise ModuleNotFoundError(f"{name} is skipped", name=name)


def leave_pandas_out() -> None:
    """Stop pyarrow from importing pandas and dateutil in this process.

    pyarrow imports them, if installed, when it first converts a Python list to an array. That takes
    longer than the rest of a short command. It only tries once.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _LeftOut()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)


def write_any_text() -> None:
    """Let stdout and stderr accept any text in every locale.

    Files and pipes get UTF-8. A terminal with another encoding shows a question mark for characters it lacks.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")
