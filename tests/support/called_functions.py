"""A plugin of pytest that notes which functions each test calls: `-p called_functions`.

LANCE_SQL_CALLS names the file; each line has the name of a test, its seconds, and ``path:function`` of each
call.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_PACKAGES = (str(ROOT / "engine" / "lance_engine"), str(ROOT / "lance_sql"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    seen: set[CodeType] = set()

    def called(frame: Any, event: str, argument: object) -> None:
        seen.add(frame.f_code)

    begin = time.monotonic()
    sys.settrace(called)
    threading.settrace(called)
    yield
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    names = {
        f"{os.path.relpath(code.co_filename, ROOT)}:{code.co_qualname.partition('.<locals>')[0]}"
        for code in seen
        if code.co_filename.startswith(_PACKAGES)
    }
    with open(os.environ["LANCE_SQL_CALLS"], "a") as file:
        file.write(json.dumps([item.nodeid, time.monotonic() - begin, sorted(names)]) + "\n")
