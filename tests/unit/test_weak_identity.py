"""Values that are freed with their owners, without running Python code."""

from __future__ import annotations

import gc
import sys

from lance_engine.weak_identity import WeakIdentityDict


class Owner:
    pass


def test_values_last_as_long_as_their_owners() -> None:
    values: WeakIdentityDict[Owner, str] = WeakIdentityDict()
    first, second = Owner(), Owner()
    values[first] = "a"
    assert values.setdefault(first, "b") == "a"
    assert values.setdefault(second, "c") == "c"
    values[second] = "d"
    assert (values[first], values.get(second), len(values)) == ("a", "d", 2)
    assert first in values
    del first
    gc.collect()
    assert len(values) == 1
    assert second in values
    assert values.get(Owner()) is None
    assert values.get(Owner(), 5) == 5
    assert values.computed(second, lambda: "e") == "d"
    third = Owner()
    assert values.computed(third, lambda: "f") == values.get(third) == "f"


def test_no_python_code_runs_when_an_owner_goes() -> None:
    """What raises in such code, an interrupt for instance, is only reported, and lost."""
    values: WeakIdentityDict[Owner, int] = WeakIdentityDict()
    owner = Owner()
    values[owner] = 1
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        del owner
    finally:
        sys.setprofile(None)
    assert called == []
    assert len(values) == 0
