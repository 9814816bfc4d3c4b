"""Concurrent writers, deterministically simulated: storage calls that others can see are scheduling points.

Each writer runs on its own thread with its own `SimulatedStore` over one dictionary of files. Only one writer
runs at a time, from one scheduling point to the next; which one is next is the choice of a `Schedule`. The
same choices give the same run. `runs` enumerates all schedules up to a bound.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

from lance_engine.errors import LanceError, StorageError
from lance_engine.io import MemoryStore

#: Folders whose files several writers create, replace or list. Files elsewhere have unique names.
SHARED = ("_versions", "_refs", "tree")
#: What can happen to a storage call: `kill` ends the writer before the call, `kill after` right after it;
#: the answer of a `lost` call is an error; a `repeated` call is made twice, as clients do after a timeout.
FAULTS = ("kill", "kill after", "lost", "repeated")


class Killed(BaseException):
    """The process of a writer has ended: it makes no further calls."""


@dataclass(frozen=True)
class Choice:
    """Which writer makes its next call, and what happens to that call."""

    writer: int
    fault: str | None = None

    def __str__(self) -> str:
        return str(self.writer) if self.fault is None else f"{self.writer}:{self.fault}"


@dataclass
class Outcome:
    """How a writer ended: `done`, `refused` with an error of ours, or `unknown`."""

    kind: str
    error: BaseException | None = None


@dataclass
class Run:
    """What happened under one schedule."""

    outcomes: list[Outcome]
    choices: list[Choice]
    #: the other choices at each step
    alternatives: list[list[Choice]]
    calls: list[str]
    files: MemoryStore

    def describe(self) -> str:
        """The calls, one per line, for a failed test."""
        steps = "\n".join(
            f"  {choice}  {call}" for choice, call in zip(self.choices, self.calls, strict=True)
        )
        ends = "\n".join(f"  {i}: {end.kind} {end.error or ''}" for i, end in enumerate(self.outcomes))
        return f"{steps}\n{ends}\nchoices: {[str(choice) for choice in self.choices]}"


class SimulatedStore:
    """The files as one writer sees them."""

    def __init__(self, files: MemoryStore, turn: _Turn) -> None:
        self._files = files
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._files, name)
        if name not in _SCHEDULED:
            return method

        def call(path: str, *arguments: Any) -> Any:
            visible = self._turn.sees_all or (path.startswith(SHARED) and not _is_fixed(name, path))
            if not visible:
                self._turn.check_alive()
                return method(path, *arguments)
            return self._turn.take(f"{name} {path}", lambda: method(path, *arguments))

        return call

    def create(self, path: str) -> Any:
        self._turn.check_alive()
        return self._files.create(path)


def _is_fixed(name: str, path: str) -> bool:
    """Whether a call reads a manifest: it never changes, and only a clean-up removes it."""
    return name.startswith("read") and path.endswith(".manifest")


_SCHEDULED = frozenset(
    ["read", "read_tail", "list", "names", "first_names", "exists", "put", "put_if_absent", "delete", "size"]
)


class _Turn:
    """The place of one writer in a run: it waits at each scheduling point until it is chosen."""

    def __init__(self, sees_all: bool) -> None:
        self.sees_all = sees_all
        self.call = ""
        self.fault: str | None = None
        self.dead = False
        self.ended = False
        self._thread: threading.Thread | None = None
        self._go = threading.Semaphore(0)
        self._waiting = threading.Semaphore(0)

    def start(self, work: Callable[[], None]) -> None:
        """Run until the first scheduling point."""

        def body() -> None:
            try:
                work()
            finally:
                self.ended = True
                self._waiting.release()

        self._thread = threading.Thread(target=body, daemon=True)
        self._thread.start()
        self._waiting.acquire()

    def proceed(self, fault: str | None) -> None:
        """Make the call that the writer waits with, and run until its next one."""
        self.fault = fault
        self._go.release()
        self._waiting.acquire()

    def take(self, name: str, call: Callable[[], Any]) -> Any:
        self.check_alive()
        if threading.current_thread() is not self._thread:
            return call()  # a helper of the writer, which waits for it
        self.call = name
        self._waiting.release()
        self._go.acquire()
        match self.fault:
            case "kill":
                self.dead = True
                raise Killed
            case "kill after":
                _quietly(call)
                self.dead = True
                raise Killed
            case "lost":
                _quietly(call)
                raise StorageError("The answer was lost (simulated)")
            case "repeated":
                _quietly(call)
        return call()

    def check_alive(self) -> None:
        if self.dead:
            raise Killed


def _quietly(call: Callable[[], Any]) -> None:
    with suppress(OSError, LanceError):
        call()


@dataclass
class Simulation:
    """Writers that start from the same files; `writers` get a store each and do their work."""

    files: MemoryStore
    writers: Sequence[Callable[[Any], Any]]
    #: also schedule reads and writes of files with unique names, which only a clean-up removes
    sees_all: bool = False
    faults: Sequence[str] = ()
    #: errors that mean that a change was refused and has no effect
    refusals: tuple[type[BaseException], ...] = (LanceError,)
    unknowns: tuple[type[BaseException], ...] = field(default=(Killed, StorageError))

    def run(self, prefix: Sequence[Choice] = ()) -> Run:
        """Run under a schedule that begins with `prefix` and then keeps to a writer while it can."""
        files = copied(self.files)
        outcomes = [Outcome("unknown") for _ in self.writers]
        turns = [_Turn(self.sees_all) for _ in self.writers]
        run = Run(outcomes, [], [], [], files)
        for index, (writer, turn) in enumerate(zip(self.writers, turns, strict=True)):
            turn.start(partial(self._work, outcomes, index, writer, SimulatedStore(files, turn)))
        last = 0
        while True:
            waiting = [index for index, turn in enumerate(turns) if not turn.ended]
            if not waiting:
                return run
            options = [Choice(index) for index in sorted(waiting, key=lambda index: index != last)]
            if not any(choice.fault for choice in run.choices):
                options += [Choice(index, fault) for index in waiting for fault in self.faults]
            step = len(run.choices)
            choice = prefix[step] if step < len(prefix) else options[0]
            assert choice in options, f"the run depends on more than its schedule: {run.describe()}"
            run.choices.append(choice)
            run.alternatives.append([option for option in options if option != choice])
            run.calls.append(turns[choice.writer].call)
            last = choice.writer
            turns[choice.writer].proceed(choice.fault)

    def _work(self, outcomes: list[Outcome], index: int, writer: Any, store: SimulatedStore) -> None:
        try:
            writer(store)
            outcomes[index] = Outcome("done")
        except self.unknowns as error:
            outcomes[index] = Outcome("unknown", error)
        except self.refusals as error:
            outcomes[index] = Outcome("refused", error)
        except BaseException as error:
            outcomes[index] = Outcome("failed", error)

    def runs(self, switches: int | None = None, most: int | None = None) -> Iterator[Run]:
        """The runs under all schedules with at most `switches` changes from a writer that could go on.

        At most `most` of them, those with few changes first.
        """
        pending: list[list[Choice]] = [[]]
        made = 0
        while pending and (most is None or made < most):
            prefix = pending.pop(0)
            run = self.run(prefix)
            made += 1
            yield run
            for step in range(len(prefix), len(run.choices)):
                for option in run.alternatives[step]:
                    longer = [*run.choices[:step], option]
                    if switches is None or _switches(longer, run) <= switches:
                        pending.append(longer)

    def sampled(self, chance: Random, switches: int, most: int) -> Iterator[Run]:
        """At most `most` different runs with few switches, each but the first derived from one before."""
        run = self.run()
        yield run
        made, seen = [run], {tuple(run.choices)}
        for _ in range(most - 1):
            run = chance.choice(made)
            step = chance.randrange(len(run.choices))
            if not run.alternatives[step]:
                continue
            longer = [*run.choices[:step], chance.choice(run.alternatives[step])]
            if _switches(longer, run) > switches:
                continue
            run = self.run(longer)
            if tuple(run.choices) not in seen:
                seen.add(tuple(run.choices))
                made.append(run)
                yield run


def _switches(choices: Sequence[Choice], run: Run) -> int:
    """How often a schedule leaves a writer that has not ended."""
    writers = [choice.writer for choice in choices]
    later = [choice.writer for choice in run.choices]
    return sum(
        before != after and before in later[place + 1 :]
        for place, (before, after) in enumerate(pairwise(writers))
    )


def copied(files: MemoryStore) -> MemoryStore:
    """The same files in a store of their own."""
    other = MemoryStore(files.uri.partition("//")[2])
    other._files.update(files._files)
    other._written.update(files._written)
    return other
