"""Ctrl-C during the first call of a process, which imports most of the package, leaves nothing half done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: Each child of this process is interrupted at one of its imports, and tries again.
CHILDREN = """
import json, os, signal, sys, threading, time, traceback
import lance_sql

place, mode, points = sys.argv[1], sys.argv[2], int(sys.argv[3])

def run(name):
    if mode == "write":
        lance_sql.write({"a": [1, 2, 3], "s": ["x", "y", "z"]}, f"{place}/{name}.lance")
        assert lance_sql.open(f"{place}/{name}.lance").scan(filter="a > 1").to_table().num_rows == 2
    else:
        rows = lance_sql.connect(engine=mode).sql(f"SELECT count(*) FROM '{place}/data.lance' WHERE a > 1")
        assert rows.fetchall() == [(2,)]

class Interrupter:
    def __init__(self, point):
        self.found, self.point = 0, point

    def find_spec(self, name, path=None, target=None):
        self.found += 1
        if self.found == self.point:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

def counted(name, point):
    interrupter = Interrupter(point)
    sys.meta_path.insert(0, interrupter)
    try:
        run(name)
        time.sleep(0)
    finally:
        sys.meta_path.remove(interrupter)
    return interrupter.found

def child(work):
    reader, writer = os.pipe()
    number = os.fork()
    if not number:
        try:
            outcome = work()
        except BaseException as error:
            outcome = traceback.format_exc()[-1500:]
        os.write(writer, json.dumps(outcome).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        outcome = json.load(answers)
    os.waitpid(number, 0)
    return outcome

def interrupted(point):
    try:
        counted(f"first{point}", point)
        outcome = "not interrupted"
    except KeyboardInterrupt:
        outcome = "interrupted"
    run(f"again{point}")
    return outcome

total = child(lambda: counted("whole", 0))
assert isinstance(total, int), total
outcomes = []
for number in range(points):
    point = (2 * number + 1) * total // (2 * points)
    outcomes.append([point, child(lambda: interrupted(point))])
print(json.dumps(outcomes))
"""


def outcomes(place: Path, mode: str, points: int) -> list[tuple[int, str]]:
    """The outcome of an interrupt at each of several points, spread over all imports."""
    import lance_sql

    if mode != "write":
        lance_sql.write({"a": [1, 2, 3]}, place / "data.lance")
    command = [sys.executable, "-W", "ignore", "-c", CHILDREN, str(place), mode, str(points)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [(point, outcome) for point, outcome in json.loads(done.stdout)]


@pytest.mark.parametrize(
    ("mode", "points"),
    [
        ("write", 3),
        pytest.param("write", 12, marks=pytest.mark.slow),
        pytest.param("duckdb", 12, marks=pytest.mark.slow),
        pytest.param("datafusion", 12, marks=pytest.mark.slow),
    ],
)
def test_a_call_after_an_interrupted_one_works(tmp_path: Path, mode: str, points: int) -> None:
    found = outcomes(tmp_path, mode, points)
    assert len(found) == points
    assert {outcome for _, outcome in found} == {"interrupted"}, found
