"""What the command line does before its commands: it keeps its start short, and its output legible."""

from __future__ import annotations

import io
import sys
from typing import Any

# What pyarrow asks of them: whether a list is a Series, and whether a value is a relativedelta.
_LEFT_OUT = ("pandas", "dateutil")


class _LeftOut:
    """A finder of modules that lets imports of some fail."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in _LEFT_OUT:
            raise ModuleNotFoundError(f"{name} is left out", name=name)


def leave_pandas_out() -> None:
    """Make pyarrow work without pandas and dateutil in this process.

    pyarrow imports them, if they are installed, the first time it makes an array of a Python list. That takes
    longer than all the rest of a short command. It asks once.
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
    """Let standard output and error take any text, whatever the locale of the process.

    Files and pipes get UTF-8. A terminal that knows less shows a question mark for what it does not know.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")
