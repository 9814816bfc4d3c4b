"""The fuzzing of one target in one process: change inputs, keep those that reach new code."""

from __future__ import annotations

import random
import re
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fuzz_coverage import Coverage

# A single input may take so much time of the processors, some ten thousand times what most take, even with
# sanitizers; the clock counts only for what waits forever, as it also goes on for other processes.
MOST_CPU_SECONDS = 20
MOST_SECONDS = 300
# and may make the process grow by so much. Inputs have at most a few hundred kilobytes.
MOST_GROWTH = 512 << 20
MOST_KEPT = 4000


class Input(Protocol):
    """Something that a target reads."""

    def mutated(self, rng: random.Random, others: Sequence[Input]) -> Input:
        """A copy with a change, which may take something from another input."""

    def stored(self) -> bytes:
        """The bytes to keep of an input that led to a finding or to new code."""


@dataclass(frozen=True)
class Target:
    """What to read, and how: `read` says what is wrong, or nothing.

    `load` makes inputs of what their `stored` gave, None where they are not kept.
    """

    name: str
    seeds: Callable[[], Sequence[Input]]
    read: Callable[[Any], str]
    native: bool = True
    load: Callable[[bytes], Input] | None = None


def fuzz(
    target: Target, first: Sequence[Input], seconds: float, coverage: Coverage, folder: Path
) -> tuple[str, list[Input]]:
    """Read `first` and changed inputs for `seconds`: what happened, and the inputs that reached new code.

    The input that is being read is always in ``last`` of `folder`, findings in ``found-N``.
    """
    rng = random.Random(time.time_ns())
    kept = list(first)
    seeds, cases = len(kept), 0
    findings: Counter[str] = Counter()
    until = time.monotonic() + seconds

    def run(input: Input) -> bool:
        """Whether the input reaches new code."""
        nonlocal cases
        (folder / "last").write_bytes(input.stored())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_PROF, MOST_CPU_SECONDS)  # ends the process, as does the other
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        coverage.start()
        try:
            problem = target.read(input)
        except BaseException as error:  # a target says what is allowed
            problem = f"{type(error).__name__}: {error}"
        fresh = coverage.stop()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before << 10
        if growth > MOST_GROWTH and cases > seeds:
            problem = problem or f"takes {growth >> 20} MiB of memory"
        cases += 1
        if problem:
            kind = re.sub(r"\d+", "N", problem)[:80]
            if not findings[kind]:
                (folder / f"found-{cases}").write_bytes(input.stored())
                print(f"finding: {folder}/found-{cases}: {problem}", flush=True)
            findings[kind] += 1
        return fresh > 0

    for seed in kept:
        run(seed)
    while time.monotonic() < until:
        recent = rng.random() < 0.5 and len(kept) > seeds
        input = kept[rng.randrange(seeds, len(kept))] if recent else rng.choice(kept)
        for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
            input = input.mutated(rng, kept)
        if run(input) and len(kept) < MOST_KEPT:
            kept.append(input)
    summary = (
        f"{cases} cases in {time.process_time():.0f} s of processors, {len(kept) - seeds} kept besides "
        f"{seeds} seeds, {coverage.reached()} {'blocks' if target.native else 'lines'} reached, "
        f"{findings.total()} findings"
    )
    return summary, kept[seeds:]
