"""The interrupt button of notebooks: the kernel of Jupyter gets SIGINT while a cell runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import lance_sql

pytestmark = pytest.mark.slow  # a kernel takes seconds to start

PREPARED = """
import lance_sql, pyarrow as pa
dataset = lance_sql.open({path!r})
connection = lance_sql.connect()
other = lance_sql.connect(engine="datafusion")
table = dataset.to_table()
"""

CELLS = {
    "scan": "dataset.scan().to_table()",
    "filter": "dataset.scan(filter='a % 7 = 3').to_table()",
    "take": "dataset.take(list(range(0, 200_000, 3)))",
    "duckdb": "connection.sql({query!r}).fetchall()",
    "datafusion": "other.sql({query!r}).fetchall()",
    "write": "lance_sql.write(table, {copy!r}, mode='overwrite')",
    "compact": "lance_sql.write(table, {copy!r}, mode='append').compact()",
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, dict[str, str]]]:
    manager = pytest.importorskip("jupyter_client.manager", reason="needs the packages of `make screenshots`")
    pytest.importorskip("ipykernel", reason="needs the packages of `make screenshots`")
    folder = tmp_path_factory.mktemp("notebook")
    path = str(folder / "t.lance")
    numbers = range(200_000)
    lance_sql.write(pa.table({"a": numbers, "s": [f"text {number % 97}" for number in numbers]}), path)
    here, client = manager.start_new_kernel()
    try:
        assert run(here, client, PREPARED.format(path=path)) == ("ok", "")
        query = f"SELECT s, sum(a) FROM '{path}' GROUP BY s"
        yield here, client, {"copy": str(folder / "copy.lance"), "query": query}
    finally:
        client.stop_channels()
        here.shutdown_kernel(now=True)


def run(manager: Any, client: Any, code: str, interrupt_after: float | None = None) -> tuple[str, str]:
    """How a cell ends, and the name of its error."""
    number = client.execute(code)
    if interrupt_after is not None:
        time.sleep(interrupt_after)
        manager.interrupt_kernel()
    while True:
        answer = client.get_shell_msg(timeout=60)
        if answer["parent_header"].get("msg_id") == number:
            return answer["content"]["status"], answer["content"].get("ename", "")


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_is_interrupted(kernel: tuple[Any, Any, dict[str, str]], cell: str) -> None:
    manager, client, names = kernel
    code = CELLS[cell].format(**names)
    assert run(manager, client, code) == ("ok", "")
    for delay in (0.3, 0.45, 0.6):
        endless = f"while True:\n    {code}"
        assert run(manager, client, endless, delay) == ("error", "KeyboardInterrupt")
    assert run(manager, client, code) == ("ok", "")  # and what was interrupted works on
