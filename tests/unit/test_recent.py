"""Values that are kept for the keys used last."""

from __future__ import annotations

import sys
import threading

import pytest
from lance_engine.recent import Recent


def test_the_key_that_was_not_used_for_the_longest_time_is_replaced() -> None:
    recent: Recent[str, int] = Recent(2)
    recent["a"], recent["b"] = 1, 2
    assert recent.get("a") == 1
    recent["c"] = 3
    assert [recent.get(key) for key in "abc"] == [1, None, 3]
    assert recent.get("b", -1) == -1
    recent["a"] = 4
    recent["d"] = 5
    assert sorted(recent.values()) == [4, 5]
    assert len(recent) == 2
    recent.clear()
    assert len(recent) == 0


def test_values_are_computed_once() -> None:
    recent: Recent[str, None] = Recent(2)
    calls: list[str] = []
    for key in "aabab":
        assert recent.computed(key, lambda key=key: calls.append(key)) is None  # type: ignore[misc]
    assert calls == ["a", "b"]


def test_nothing_is_kept_of_what_fails() -> None:
    recent: Recent[str, int] = Recent(2)
    with pytest.raises(ZeroDivisionError):
        recent.computed("a", lambda: 1 // 0)
    assert len(recent) == 0


def test_threads_share_it() -> None:
    recent: Recent[int, int] = Recent(3)
    failed: list[Exception] = []

    def work(step: int) -> None:
        try:
            for number in range(3000):
                key = number * step % 7
                assert recent.computed(key, lambda key=key: -key) == -key  # type: ignore[misc]
        except Exception as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(step,)) for step in (1, 3, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failed == []
    assert len(recent) <= 3
