"""Runs all generators in turn with new seeds for some time, and collects findings (`make differential`).

``python run.py --hours 8``; ``--only queries=3,commits`` chooses generators, one of which has three times as
much time, ``--until statements=1000000`` stops those that count statements then, ``--first`` is the first
seed, and ``--replay commits 17`` runs one seed again. Each turn is a process of its own, so that a crash or a
hang is a finding too. Findings are printed and kept in ``build/differential``; and the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / "support"), str(HERE.parent / "fuzz")]

#: Seconds of one turn, and those after which a seed counts as a hang.
TURN, LATE = 120.0, 600
#: Between two reports of the counts.
REPORT = 300.0


def turn(name: str, first: int, seconds: float, step: int, planted: str | None) -> None:
    """Rounds of one generator in this process; one line of JSON when each begins and ends."""
    if planted is not None:
        import planted_faults

        planted_faults.plant(planted)
    from generators import GENERATORS

    faulthandler.enable()
    begin, cases = time.monotonic(), GENERATORS[name].cases
    for seed in range(first, sys.maxsize if cases is None else cases, step):
        if seed > first and time.monotonic() - begin > seconds:
            return
        print(json.dumps({"seed": seed}), flush=True)
        used = time.process_time()
        faulthandler.dump_traceback_later(LATE, exit=True)
        try:
            count, findings = GENERATORS[name].run(seed)
        except Exception:
            import traceback

            count, findings = 0, [f"the generator failed:\n{traceback.format_exc()}"]
        faulthandler.cancel_dump_traceback_later()
        used = time.process_time() - used
        told = {"seed": seed, "count": count, "findings": findings, "seconds": used}
        print(json.dumps(told), flush=True)
        if findings and planted is not None:
            return


def turns(
    name: str, first: int, seconds: float, *, step: int = 1, planted: str | None = None
) -> Iterator[dict[str, Any]]:
    """The rounds of a turn in another process. A seed on which it dies is a round with a finding."""
    command = [sys.executable, __file__, "--turn", name, str(first), str(seconds), str(step)]
    command += ["--planted", planted] if planted is not None else []
    begun = first
    # In memory, where nothing waits for a disk; a process that dies leaves nothing behind.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory(dir=memory) as folder:
        # Modules are compiled once, not by each turn.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        # pylance panics where it refuses some sequences: nobody reads where.
        environment |= {"TMPDIR": folder, "RUST_BACKTRACE": "0"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if not line.startswith('{"seed"'):
                    continue
                told = json.loads(line)
                begun = told["seed"]
                if "count" in told:
                    yield told
        if process.returncode:
            errors.seek(0)
            text = errors.read()
            how = "hung" if "Timeout" in text else f"ended with {process.returncode}"
            text = f"the process {how}:\n{text[-4000:]}"
            yield {"seed": begun, "count": 0, "findings": [text], "seconds": 0.0}


class Results:
    """Counts by generator, and findings as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cases: Counter[str] = Counter()
        self.rounds: Counter[str] = Counter()
        self.findings: Counter[str] = Counter()
        #: of the processors
        self.seconds: Counter[str] = Counter()
        self._lock = Lock()

    def add(self, name: str, told: dict[str, Any]) -> None:
        with self._lock:
            self.cases[name] += told["count"]
            self.rounds[name] += 1
            self.seconds[name] += told["seconds"]
            for text in told["findings"]:
                self.findings[name] += 1
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"{name}-{told['seed']}.txt"
                replay = f"python tests/differential/run.py --replay {name} {told['seed']}"
                with path.open("a") as file:
                    file.write(f"{replay}\n{text}\n\n")
                print(f"{name}, seed {told['seed']}:\n{text}\n", flush=True)

    def by_unit(self) -> Counter[str]:
        from generators import GENERATORS

        found: Counter[str] = Counter()
        for name, count in self.cases.items():
            found[GENERATORS[name].unit] += count
        return found

    def table(self) -> str:
        from generators import GENERATORS

        lines = [
            f"{name:20} {self.rounds[name]:7} rounds {self.cases[name]:9} {GENERATORS[name].unit:10} "
            f"{self.findings[name]:4} findings {self.seconds[name]:6.0f} s, "
            f"{self.cases[name] / max(self.seconds[name], 0.1):.1f} a second of the processor"
            + (f" (all cases: {GENERATORS[name].cases})" if GENERATORS[name].cases else "")
            for name in GENERATORS
            if self.rounds[name]
        ]
        total = ", ".join(f"{count:,} {unit}" for unit, count in self.by_unit().items())
        return "\n".join([*lines, f"in all {total}; {self.findings.total()} findings"])


def run(
    shares: dict[str, float], seconds: float, first: int, jobs: int, folder: Path, most: dict[str, int]
) -> int:
    """Generators in turn until the time is over, or all cases have run; the number of findings.

    Each has its share of the time, and stops when there are `most` cases of its unit.
    """
    from generators import GENERATORS

    results = Results(folder)

    def interrupted(*_: object) -> None:
        print(results.table(), flush=True)
        os._exit(bool(results.findings))

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    end = time.monotonic() + seconds
    lock = Lock()
    reported = time.monotonic()

    def work(job: int) -> None:
        nonlocal reported
        cases = {name: GENERATORS[name].cases for name in shares}
        # Each job has the seeds of its own, and goes on where its last turn ended.
        seeds = {name: (first if cases[name] is None else 0) + job for name in shares}
        todo = deque(shares)
        todo.rotate(-job)
        while todo and (left := end - time.monotonic()) > 0:
            name = todo[0]
            todo.rotate(-1)
            for told in turns(name, seeds[name], min(TURN * shares[name], left), step=jobs):
                results.add(name, told)
                seeds[name] = told["seed"] + jobs
            unit = GENERATORS[name].unit
            if seeds[name] >= (cases[name] or sys.maxsize) or results.by_unit()[unit] >= most.get(
                unit, sys.maxsize
            ):
                todo.remove(name)
            with lock:
                if time.monotonic() - reported > REPORT:
                    reported = time.monotonic()
                    print(f"{results.table()}\n", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))
    print(results.table())
    if results.findings:
        print(f"the findings are in {folder}")
    return results.findings.total()


def main() -> int:
    from generators import GENERATORS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--first", type=int, default=int(time.time()), help="the first seed of each generator"
    )
    parser.add_argument("--only", help="some generators, separated by commas; NAME=3 for more of the time")
    parser.add_argument("--until", default="", help="the most cases of some units: UNIT=COUNT,...")
    parser.add_argument("--folder", type=Path, default=HERE.parents[1] / "build" / "differential")
    parser.add_argument("--replay", nargs=2, metavar=("GENERATOR", "SEED"))
    parser.add_argument("--turn", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--planted", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.turn:
        name, first, seconds, step = given.turn
        turn(name, int(first), float(seconds), int(step), given.planted)
        return 0
    if given.replay:
        name, seed = given.replay
        found = GENERATORS[name].run(int(seed)).findings
        print(*found, sep="\n")
        return bool(found)
    os.nice(10)
    chosen = (given.only or ",".join(GENERATORS)).split(",")
    shares = {name: float(share or 1) for name, _, share in (one.partition("=") for one in chosen)}
    units = (one.partition("=") for one in given.until.split(",") if one)
    most = {unit: int(count) for unit, _, count in units}
    print(f"from seed {given.first}: {', '.join(chosen)}", flush=True)
    return bool(run(shares, given.hours * 3600, given.first, given.jobs, given.folder, most))


if __name__ == "__main__":
    sys.exit(main())
