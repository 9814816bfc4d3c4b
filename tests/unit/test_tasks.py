"""Work on other threads: results, errors, cancelling, and threads that end."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import CancelledError

import pytest
from lance_engine.tasks import Pool, Task, in_background


def test_results_and_errors_arrive() -> None:
    with Pool(2, "test-tasks") as pool:
        assert list(pool.map(lambda number: number * 2, range(50))) == [number * 2 for number in range(50)]
        failing = pool.submit(int, "x")
        with pytest.raises(ValueError, match="invalid literal"):
            failing.result()
        with pytest.raises(ValueError, match="invalid literal"):
            failing.result()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("test-tasks")]


def test_no_more_threads_than_asked_for() -> None:
    names = set()
    gate = threading.Barrier(3, timeout=30)

    def note() -> None:
        gate.wait()
        names.add(threading.current_thread().name)

    with Pool(3, "test-tasks") as pool:
        for task in [pool.submit(note) for _ in range(9)]:
            task.result()
    assert names == {"test-tasks_0", "test-tasks_1", "test-tasks_2"}


def test_what_has_not_begun_is_cancelled() -> None:
    task = Task(lambda: 1)
    assert not task.wait(0)
    assert task.cancel()
    task.run()
    assert task.wait(0)
    with pytest.raises(CancelledError):
        task.result()
    done = Task(lambda: 1)
    done.run()
    assert not done.cancel()
    assert done.result() == 1


def test_an_error_in_the_block_cancels_what_waits() -> None:
    begun = threading.Event()
    go = threading.Event()

    def first() -> None:
        begun.set()
        go.wait(30)

    tasks: list[Task[None]] = []

    def fail() -> None:
        with Pool(1, "test-tasks") as pool:
            tasks.append(pool.submit(first))
            tasks.append(pool.submit(lambda: None))
            begun.wait(30)
            threading.Timer(0.05, go.set).start()
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert tasks[0].result() is None
    with pytest.raises(CancelledError):
        tasks[1].result()


def test_a_call_of_its_own_thread() -> None:
    assert in_background(lambda: threading.current_thread().name, "test-alone").result() == "test-alone"


@pytest.mark.parametrize("ends", ["", "import os; os._exit(0)", "raise KeyError"])
def test_the_process_ends_while_threads_wait_and_work(ends: str) -> None:
    script = f"""
import time
from lance_engine.tasks import Pool
pool = Pool(2, "test-tasks")
assert pool.submit(int, "3").result() == 3
pool.submit(time.sleep, 0.2)
{ends}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == (1 if "raise" in ends else 0)
    assert "Fatal" not in done.stderr
