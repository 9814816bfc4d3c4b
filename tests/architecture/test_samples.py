"""What `make test` takes of a large matrix."""

from __future__ import annotations

from itertools import product

import pytest
from counts import sample


def test_a_sample_has_every_value_that_fits() -> None:
    cases = [{"engine": engine, "kind": kind} for engine, kind in product(range(2), range(30))]
    chosen = sample(cases, 30)
    assert len(chosen) == 30
    assert {cases[number]["kind"] for number in chosen} == set(range(30))
    assert {cases[number]["engine"] for number in chosen} == {0, 1}
    assert chosen == sample(cases, 30)
    assert len(sample(cases, 3)) == 3
    assert sample(cases, 100) == set(range(60))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(5))
def test_a_case(number: int) -> None:
    """One of five; the next test counts them."""


def test_most_cases_are_slow(request: pytest.FixtureRequest) -> None:
    cases = [item for item in request.session.items if item.name.startswith("test_a_case[")]
    assert len([case for case in cases if not case.get_closest_marker("slow")]) <= 2
