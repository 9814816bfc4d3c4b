"""Mutation testing (`make mutation`): does a test fail if a line of the code is wrong?

``python mutation.py --calls FILE [--each 40] [--seed 0] [FOLDER ...]``: as many mutants of each folder, each
against the tests that call the changed function, quickest first. FILE is what ``pytest -p called_functions``
wrote; it is made first if it does not exist, as slowly as the tests run (`--tests`: with some of them only,
which may kill fewer). Survivors are printed, then scores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "support"))
from code_mutants import CodeMutant, apply, mutants  # noqa: E402

FOLDERS = [f"engine/lance_engine/{name}" for name in ("table", "operations", "expr", "index")]
FOLDERS += ["lance_sql/pushdown", "lance_sql/statements"]
#: The tests of these folders.
TESTS = ("tests/unit", "tests/property", "tests/sql", "tests/differential", "tests/faults", "tests/interop")
#: Seconds for the tests of one mutant; those of one that repeats forever end then, too.
MOST_SECONDS = 60.0
#: How many times as many tests a mutant has to survive.
MOST_PARTS = 6


def note_calls(file: Path, tests: Sequence[str]) -> None:
    """Run the tests, and note what each of them calls."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "called_functions", "-m", "not slow", *tests]
    paths = [str(ROOT / "tests" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"LANCE_SQL_CALLS": str(file), "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run(command, cwd=ROOT, env=environment, check=False)


def tests_by_function(file: Path) -> dict[str, list[tuple[float, str]]]:
    """For each function, the tests that call it with their seconds: quickest first."""
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for line in file.read_text().splitlines():
        test, seconds, names = json.loads(line)
        for name in names:
            found[name].append((seconds, test))
    return {name: sorted(tests) for name, tests in found.items()}


def outcome(mutant: CodeMutant, tests: list[str]) -> str:
    """`killed`, `survived` or `unreached`, from a child process in which the function is changed."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            __import__(_module(mutant.path))
            if apply(ROOT, mutant):
                import pytest

                code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]))
        finally:
            os._exit(code)
    until = time.monotonic() + MOST_SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return {0: "survived", 70: "unreached"}.get(os.waitstatus_to_exitcode(status), "killed")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "killed"


def _module(path: str) -> str:
    return path.removeprefix("engine/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def in_parts(tests: list[tuple[float, str]]) -> Iterator[list[str]]:
    """The tests in parts that take half of the time: each function once before its other parameters."""
    first: dict[str, tuple[float, str]] = {}
    for seconds, name in tests:
        first.setdefault(name.partition("[")[0], (seconds, name))
    rest = [test for test in tests if test not in first.values()]
    found, total = list[str](), 0.0
    for seconds, name in [*first.values(), *rest]:
        if found and (total + seconds > MOST_SECONDS / 2 or len(found) == 100):
            yield found
            found, total = [], 0.0
        found.append(name)
        total += seconds
    yield found


def sampled(folder: str, each: int, seed: int) -> list[CodeMutant]:
    """Mutants of a folder: any function is as likely as another, so that long ones are not all there is."""
    chance = random.Random(f"{folder} {seed}")
    by_function: dict[tuple[str, str], list[CodeMutant]] = defaultdict(list)
    for path in sorted((ROOT / folder).rglob("*.py")):
        for mutant in mutants(ROOT, str(path.relative_to(ROOT))):
            by_function[mutant.path, mutant.function].append(mutant)
    names = chance.sample(sorted(by_function), min(each, len(by_function)))
    return [chance.choice(by_function[name]) for name in names]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--calls", type=Path, default=ROOT / "build" / "mutation" / "calls")
    parser.add_argument("--tests", default=",".join(TESTS), help="folders of tests, for a new FILE")
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.chdir(ROOT)
    if not given.calls.exists():
        given.calls.parent.mkdir(parents=True, exist_ok=True)
        note_calls(given.calls, given.tests.split(","))
    known = tests_by_function(given.calls)
    import pytest  # noqa: F401 - children need not import it again

    import lance_sql  # noqa: F401

    scores: dict[str, Counter[str]] = {}
    for folder in given.folders:
        counts = scores[folder] = Counter()
        for mutant in sampled(folder, given.each, given.seed):
            tests = known.get(f"{mutant.path}:{mutant.function}")
            result = "uncalled"
            for part in islice(in_parts(tests or []), MOST_PARTS if tests else 0):
                if (result := outcome(mutant, part)) == "killed":
                    break
            counts[result] += 1
            if result != "killed":
                print(f"{result:9} {mutant}", flush=True)
    for folder, counts in scores.items():
        told = ", ".join(f"{count} {name}" for name, count in counts.most_common())
        print(f"{folder:32} {counts['killed'] / max(1, counts.total()):.0%} killed: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
