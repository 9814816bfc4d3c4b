"""Concurrent changes under all schedules of their storage calls, up to a bound: some order explains each one.

`LANCE_SQL_INTERLEAVINGS=full` runs every pair and many triples, with kills and lost answers (an hour or
more); `LANCE_SQL_SEED` chooses what a short run tries.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import combinations_with_replacement

import pytest
from simulated_changes import CHANGES, CLEANING, KINDS, drawn, explain, simulation, without_pauses
from simulated_store import FAULTS, Choice

FULL = os.environ.get("LANCE_SQL_INTERLEAVINGS") == "full"
SEED = int(os.environ.get("LANCE_SQL_SEED", "0"))
PAIRS = list(combinations_with_replacement(CHANGES, 2))
#: Pairs that insert the same keys, or change the same rows.
CLOSE = [
    ("insert new keys", "insert new keys again"),
    ("MERGE that inserts", "append"),
    ("MERGE that inserts", "MERGE that inserts"),
    ("MERGE that inserts", "upsert"),
    ("MERGE", "insert new keys"),
    ("MERGE", "compact"),
    ("upsert", "update"),
    ("update", "delete others"),
    ("compact", "create index"),
    ("compact", "delete a fragment"),
    ("restore", "append"),
    ("add column", "append"),
    ("clean up", "append"),
    ("replace rows", "add check"),
    ("replace rows", "add key"),
]


def some(pairs: Sequence[tuple[str, ...]], count: int) -> list[tuple[str, ...]]:
    return list(pairs) if FULL else random.Random(SEED).sample(list(pairs), count)


def check(names: Sequence[str], stable: bool, switches: int, most: int, faults: Sequence[str] = ()) -> None:
    with without_pauses():
        for run in simulation(names, stable, faults).runs(switches, most):
            try:
                explain(run, names, stable)
            except AssertionError as error:
                raise AssertionError(
                    f"{' | '.join(names)}, stable={stable}: {error}\n{run.describe()}"
                ) from error


@pytest.mark.sampled(5)
@pytest.mark.parametrize("names", [*CLOSE, *some(PAIRS, 4)], ids=" | ".join)
def test_two_changes(names):
    """Under every schedule with at most one change of the writer."""
    for stable in (False, True):
        check(names, stable, switches=1, most=8)


#: A tag of a version that is no longer the newest, while a clean-up removes it: two schedules of hundreds.
TAGGED_LATE = "1 0 0 0 0 0 0 0 0 1 1 1" + " 2" * 37 + " 1"


def test_a_tag_never_names_a_version_that_a_cleanup_removes():
    """The tag is created after the clean-up has listed the tags."""
    names = ("append", "tag", "clean up")
    with without_pauses():
        simulated = simulation(names, False)
        late = []
        for run in simulated.runs(1, 12):
            explain(run, names, False)
            late.append(run.outcomes[1].kind)
        for cut in range(13, 45, 4):
            schedule = [Choice(int(writer)) for writer in TAGGED_LATE.split()[:cut]] + [Choice(1)]
            run = simulated.run(schedule)
            explain(run, names, False)
            late.append(run.outcomes[1].kind)
    assert {"done", "refused"} <= set(late)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_an_only_inserting_merge_whose_answer_is_lost(fault):
    check(("MERGE that inserts", "append"), False, switches=1, most=12, faults=[fault])


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("names", list(dict.fromkeys([*CLOSE, *some(PAIRS, 60)])), ids=" | ".join)
def test_two_changes_with_more_schedules(names):
    cleaning = bool(CLEANING.intersection(names))
    for stable in (False, True):
        check(names, stable, switches=2 if cleaning else 4, most=2_000 if FULL else 200)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("names", list(dict.fromkeys([*CLOSE, *some(PAIRS, 40)])), ids=" | ".join)
def test_two_changes_with_faults(names):
    check(names, False, switches=1, most=2_000 if FULL else 200, faults=FAULTS)


TRIPLES = [tuple(random.Random(SEED + number).sample(list(CHANGES), 3)) for number in range(60)]


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("names", [("append", "tag", "clean up"), *some(TRIPLES, 10)], ids=" | ".join)
def test_three_changes(names):
    check(names, False, switches=2, most=2_000 if FULL else 200)


def test_every_change_has_a_kind_and_every_kind_its_turn():
    assert sorted(name for kind in KINDS for name in kind) == sorted(CHANGES)
    for number, kind in enumerate(KINDS):
        assert set(drawn(2 * number)) <= set(kind)


def test_the_same_choices_give_the_same_run():
    with without_pauses():
        first = list(simulation(("append", "update"), False).runs(2))
        again = [simulation(("append", "update"), False).run(run.choices) for run in first]
    assert len(first) > 10
    assert [run.choices for run in first] == [run.choices for run in again]
    assert len({tuple(map(str, run.choices)) for run in first}) == len(first)


def test_a_lost_update_is_found(monkeypatch):
    """The simulation notices a commit that replaces a version of another writer."""
    from lance_engine.io import MemoryStore

    monkeypatch.setattr(MemoryStore, "put_if_absent", MemoryStore.put)
    with pytest.raises(AssertionError, match="no order of"):
        check(("append", "delete"), False, switches=2, most=50)


def test_a_killed_writer_makes_no_more_calls():
    with without_pauses():
        run = simulation(("append", "delete"), False, ["kill"]).run([Choice(0, "kill")])
    assert run.outcomes[0].kind == "unknown"
    assert [choice.writer for choice in run.choices[1:]] == [1] * (len(run.choices) - 1)
    explain(run, ("append", "delete"), False)
