"""The generators of `make differential`: each makes the cases of a seed and runs them; says what is wrong."""

from __future__ import annotations

import random
import resource
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from simulated_changes import EXHAUSTED, explain, simulation, without_pauses
from simulated_store import Run, Simulation

#: Statements of one round of queries, so that a round takes some seconds.
_QUERIES: Final = 600
_CHANGES: Final = 100
#: Findings after which the round of a seed ends: reducing each takes hundreds of statements.
_MOST_FOUND: Final = 2
_FILTERS: Final = 200
_SCHEDULES: Final = 40
_MUTANTS: Final = 50
#: What the process of a changed file may take besides what it has: it cannot ask for all memory.
_MEMORY: Final = 4 << 30


class Round(NamedTuple):
    """How many cases a seed gave, and a text for each finding: a test, or what shows it."""

    count: int
    findings: list[str]


class Generator(NamedTuple):
    """What it counts, and the round of a seed."""

    unit: str
    run: Callable[[int], Round]
    #: how many cases there are, each of which runs once; None if each seed makes others
    cases: int | None = None


def _queries(engine: str, seed: int) -> Round:
    from compared_queries import differences

    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        found = list(islice(differences(Path(folder), seed, engine, _QUERIES, counted), _MOST_FOUND))
    return Round(counted.total(), [f"{one}\n{one.as_test()}" for one in found])


def _spark_queries(seed: int) -> Round:
    from spark_queries import differences

    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        found = list(islice(differences(Path(folder), seed, counted), _MOST_FOUND))
    return Round(counted.total(), found)


def _changes(engine: str, seed: int) -> Round:
    from random_changes import run

    outcomes, found = run(seed * 1000, _CHANGES, engine)
    return Round(outcomes.total(), found)


def _sessions(seed: int) -> Round:
    from random_sessions import round_of

    outcomes, found = round_of(seed)
    return Round(outcomes.total(), [] if found is None else [found])


def _filters(seed: int) -> Round:
    from random_filters import compared

    with tempfile.TemporaryDirectory() as folder:
        _, found = compared(seed, _FILTERS, Path(folder) / "t.lance")
    return Round(_FILTERS, found)


def _operations(seed: int) -> Round:
    """Turns by us, by statements and by pylance."""
    from random_operations import turns_of

    try:
        with tempfile.TemporaryDirectory() as folder:
            turns_of(Path(folder), seed, every=6)
    except Exception as found:
        error = found
        try:
            with tempfile.TemporaryDirectory() as folder:
                turns_of(Path(folder), seed)
        except Exception as earlier:
            error = earlier  # after the step that is wrong
        call = f"turns_of(tmp_path, {seed})"
        return Round(1, [f"{_told(error)}\ndef test_turns(tmp_path: Path) -> None:\n    {call}"])
    return Round(1, [])


def _pylance(seed: int) -> Round:
    """A sequence by pylance alone, of which each version must read the same."""
    from compared_versions import differences
    from random_sequences import Sequence

    with tempfile.TemporaryDirectory() as folder:
        sequence = Sequence(Path(folder), seed)
        try:
            sequence.run()
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return Round(0, [])  # pylance could not write it
        return Round(1, differences(sequence.uri, seed))


def _commits(seed: int) -> Round:
    """Schedules of two or three changes, half of them with faults, in random order of their switches."""
    from simulated_changes import CLEANING, drawn
    from simulated_store import FAULTS

    chance = random.Random(seed)
    names = drawn(seed)
    stable = chance.random() < 0.5
    faults = FAULTS if chance.random() < 0.5 else ()
    switches = 1 if CLEANING.intersection(names) else 3
    return _explained(
        names, stable, faults, lambda simulated: simulated.sampled(chance, switches, _SCHEDULES)
    )


def _explained(
    names: tuple[str, ...],
    stable: bool,
    faults: Sequence[str],
    chosen: Callable[[Simulation], Iterable[Run]],
) -> Round:
    """Some runs of a simulation, until one has no explanation."""
    count = 0
    with without_pauses():
        for run in chosen(simulation(names, stable, faults)):
            count += 1
            try:
                explain(run, names, stable)
            except AssertionError as error:
                choices = ", ".join(map(repr, run.choices))
                test = (
                    f"def test_schedule() -> None:\n    names = {names}\n    with without_pauses():\n"
                    f"        run = simulation(names, {stable}, {faults}).run([{choices}])\n"
                    f"        explain(run, names, {stable})"
                )
                return Round(count, [f"{error}\n{run.describe()}\n{test}"])
    return Round(count, [])


def _all_schedules(number: int) -> Round:
    """All schedules of a pair or a triple up to its bound."""
    case = EXHAUSTED[number]
    return _explained(case.names, case.stable, case.faults, lambda simulated: simulated.runs(case.switches))


def _twins(seed: int) -> Round:
    """Calls of the dataset API, by us and by pylance."""
    from random_twins import round_of

    with tempfile.TemporaryDirectory() as folder:
        outcomes, found = round_of(Path(folder), seed)
    return Round(outcomes.total(), [] if found is None else [found])


@cache
def _sound(structured: bool) -> tuple[Path, list[str]]:
    import whole_datasets
    from fuzz_datasets import sound_datasets

    names = list(whole_datasets.SOUND)
    sound = sound_datasets(names)
    if structured:
        from structured import prepare

        prepare(sound)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, resource.RLIM_INFINITY))
    return sound, names


def _mutants(structured: bool, seed: int, by_spark: bool = False) -> Round:
    """Datasets with one changed file, by bytes or by fields, put to use."""
    import structured as by_field
    import whole_datasets

    uses_of = None
    if by_spark:
        import spark_uses

        spark_uses.session()
        uses_of = (spark_uses.reads, spark_uses.writes)
    change_file = by_field.change_file if structured else whole_datasets.mutate
    sound, names = _sound(structured)
    found: list[str] = []
    with tempfile.TemporaryDirectory(dir=sound.parent) as folder:
        count = _MUTANTS // 5 if by_spark else _MUTANTS
        for number in range(count):
            mutant = seed * _MUTANTS + number
            uses = 1 + mutant % 3
            troubles = whole_datasets.try_mutant(
                sound, Path(folder), mutant, names, uses, change_file, uses_of
            )
            found += [str(trouble) for trouble in troubles]
    return Round(count, found)


def _told(error: Exception) -> str:
    return "".join(traceback.format_exception(error)[-6:])


GENERATORS: Final[dict[str, Generator]] = {
    "queries": Generator("statements", partial(_queries, "duckdb")),
    "queries-datafusion": Generator("statements", partial(_queries, "datafusion")),
    "queries-spark": Generator("statements", _spark_queries),
    "changes": Generator("statements", partial(_changes, "duckdb")),
    "changes-datafusion": Generator("statements", partial(_changes, "datafusion")),
    "sessions": Generator("statements", _sessions),
    "filters": Generator("statements", _filters),
    "operations": Generator("sequences", _operations),
    "pylance": Generator("sequences", _pylance),
    "commits": Generator("schedules", _commits),
    "all-schedules": Generator("schedules", _all_schedules, len(EXHAUSTED)),
    "twins": Generator("calls", _twins),
    "mutants": Generator("mutants", partial(_mutants, False)),
    "structured": Generator("mutants", partial(_mutants, True)),
    "spark": Generator("mutants", partial(_mutants, True, by_spark=True)),
}
