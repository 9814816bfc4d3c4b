"""Mutation testing (`make mutation`): does a test fail if a line of the code is wrong?

``python mutation.py [--each 40] [--seed 0] [--seconds 20] [FOLDER ...]``: as many mutants of each folder,
each against the tests that call the changed function. Survivors are printed, then scores.

Tests are collected once; a child process for each mutant has them, changes the function, and ends at the
first test that fails. Quick tests come first, each with one of its parameters before the others, until they
would take `--seconds`. A test that fails in a child without a mutant, too, says nothing and is left out.
``--calls FILE`` is what ``pytest -p called_functions`` wrote; it is made first if it does not exist, as
slowly as the tests run (`--tests`: with some of them only, which may notice fewer).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "support"))
from code_mutants import CodeMutant, apply, mutants  # noqa: E402

FOLDERS = [f"engine/lance_engine/{name}" for name in ("table", "operations", "expr", "index")]
FOLDERS += ["lance_sql/pushdown", "lance_sql/statements"]
#: The tests of these folders.
TESTS = ("tests/unit", "tests/property", "tests/sql", "tests/differential", "tests/faults", "tests/interop")
#: How many times as long as they may take the tests of a mutant run before they count as hung, and at least.
LATE, LEAST_LATE = 3, 30.0
#: How a child ends, besides with 1 when a test fails.
SURVIVED, UNREACHED = 0, 70
#: A function of a file, and the tests that call it with their seconds.
Calls = Mapping[str, Sequence[tuple[float, str]]]


def note_calls(file: Path, tests: Sequence[str]) -> None:
    """Run the tests, and note what each of them calls."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "called_functions", "-m", "not slow", *tests]
    paths = [str(ROOT / "tests" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"LANCE_SQL_CALLS": str(file), "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run(command, cwd=ROOT, env=environment, check=False)


def tests_by_function(file: Path) -> Calls:
    """For each function, the tests that call it with their seconds: quickest first."""
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for line in file.read_text().splitlines():
        test, seconds, names = json.loads(line)
        for name in names:
            found[name].append((seconds, test))
    return {name: sorted(tests) for name, tests in found.items()}


def within(tests: Sequence[tuple[float, str]], seconds: float) -> list[str]:
    """The tests that a mutant meets: those of one function once before its other parameters."""
    first: dict[str, tuple[float, str]] = {}
    for one in tests:
        first.setdefault(one[1].partition("[")[0], one)
    found, total = list[str](), 0.0
    for took, name in [*first.values(), *(one for one in tests if one not in first.values())]:
        total += took
        if found and total > seconds:
            break
        found.append(name)
    return found


class Mutation:
    """A plugin of pytest that runs the collected tests for each mutant, in a child process."""

    def __init__(
        self, chosen: Mapping[str, Sequence[CodeMutant]], calls: Calls, seconds: float, out: TextIO
    ) -> None:
        #: how many mutants of a folder had which result
        self.scores: dict[str, Counter[str]] = {folder: Counter() for folder in chosen}
        self._chosen, self._seconds, self._out = chosen, seconds, out
        self._tests = {
            mutant: within(calls.get(f"{mutant.path}:{mutant.function}", ()), seconds)
            for found in chosen.values()
            for mutant in found
        }
        self._items: dict[str, Any] = {}
        self._sound: dict[str, bool] = {}
        #: in a child, where it says which test failed
        self._failures: int | None = None

    def files(self) -> list[str]:
        """The files of the tests, so that nothing else is collected."""
        return sorted({name.partition("::")[0] for tests in self._tests.values() for name in tests})

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        for mutant in self._tests:
            module = mutant.path.removeprefix("engine/").removesuffix(".py").removesuffix("/__init__")
            import_module(module.replace("/", "."))
        for folder, found in self._chosen.items():
            for mutant in found:
                tests = [name for name in self._tests[mutant] if name in self._items]
                result = self._result(mutant, tests) if tests else "uncalled"
                self.scores[folder][result] += 1
                if result != "noticed":
                    print(f"{result:9} {mutant} ({len(tests)} tests)", file=self._out, flush=True)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._failures is not None and report.failed:
            os.write(self._failures, report.nodeid.encode())
            os._exit(1)

    def _result(self, mutant: CodeMutant, tests: list[str]) -> str:
        while True:
            code, failed = self._in_child(mutant, tests)
            if code in (SURVIVED, UNREACHED):
                return "survived" if code == SURVIVED else "unreached"
            if failed is None or self._is_sound(failed):
                return "noticed"
            tests = [name for name in tests if self._sound.get(name, True)]

    def _is_sound(self, test: str) -> bool:
        """Whether the test passes in a child without a mutant."""
        if test not in self._sound:
            self._sound[test] = self._in_child(None, [test])[0] == SURVIVED
            if not self._sound[test]:
                print(f"left out  {test}", file=self._out, flush=True)
        return self._sound[test]

    def _in_child(self, mutant: CodeMutant | None, tests: list[str]) -> tuple[int, str | None]:
        """How a child ended that ran the tests, and which test failed; a hang is like a failure."""
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pylance warns of forks
            child = os.fork()
        if child == 0:
            code = UNREACHED
            try:
                os.setsid()
                self._failures = writing
                if mutant is None or apply(ROOT, mutant):
                    items = [self._items[name] for name in tests]
                    for item, following in zip(items, [*items[1:], None], strict=True):
                        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    code = SURVIVED
            finally:
                os._exit(code)
        os.close(writing)
        until = time.monotonic() + max(LEAST_LATE, LATE * self._seconds)
        code = 1
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.005)
        else:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            os.set_blocking(reading, False)
            return code, (pipe.read() or b"").decode() or None


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
    parser.add_argument("--seconds", type=float, default=20, help="of tests for each mutant")
    given = parser.parse_args()
    os.chdir(ROOT)
    if not given.calls.exists():
        given.calls.parent.mkdir(parents=True, exist_ok=True)
        note_calls(given.calls, given.tests.split(","))
    import lance_sql  # noqa: F401 - before the tests, so that every module has one copy

    chosen = {folder: sampled(folder, given.each, given.seed) for folder in given.folders}
    with (
        os.fdopen(os.dup(1), "w") as out,
        open(os.devnull, "w") as nothing,
        tempfile.TemporaryDirectory() as temporary,
    ):
        os.dup2(nothing.fileno(), 1)  # what pytest writes, also in children
        plugin = Mutation(chosen, tests_by_function(given.calls), given.seconds, out)
        options = ["-q", "-p", "no:cacheprovider", f"--basetemp={temporary}/tests"]
        pytest.main([*options, *plugin.files()], plugins=[plugin])
        for folder, counts in plugin.scores.items():
            told = ", ".join(f"{count} {name}" for name, count in counts.most_common())
            print(f"{folder:32} {counts['noticed'] / max(1, counts.total()):.0%} noticed: {told}", file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
