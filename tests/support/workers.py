"""How pytest-xdist spreads the tests: a file's tests share a worker, and so do all that need the JVM."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

NEED_THE_JVM = ("tests/spark/", "tests/docs/test_readme.py", "tests/sql/statements/test_conformance.py")


def needs_the_jvm(node_id: str) -> bool:
    return node_id.startswith(NEED_THE_JVM)


class FilesAndOneJvm(LoadFileScheduling):  # type: ignore[misc]
    """One worker per file at a time, so that module fixtures are made once; one worker starts Spark."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the order of `longest_first`

    def _split_scope(self, nodeid: str) -> str:
        return "JVM" if needs_the_jvm(nodeid) else str(super()._split_scope(nodeid))


def longest_first(items: list[pytest.Item]) -> None:
    """Start with Spark, so that it is not still running on one worker when the others are done."""
    items.sort(key=lambda item: not needs_the_jvm(item.nodeid))
