"""Values that are kept for the keys used last."""

from __future__ import annotations

import sys
import threading

import pytest
from lance_engine.lru_cache import LruCache


def test_the_key_that_was_not_used_for_the_longest_time_is_replaced() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache["a"], cache["b"] = 1, 2
    assert cache.get("a") == 1
    cache["c"] = 3
    assert [cache.get(key) for key in "abc"] == [1, None, 3]
    assert cache.get("b", -1) == -1
    cache["a"] = 4
    cache["d"] = 5
    assert sorted(cache.values()) == [4, 5]
    assert len(cache) == 2
    cache.clear()
    assert len(cache) == 0


def test_values_are_computed_once() -> None:
    cache: LruCache[str, None] = LruCache(2)
    calls: list[str] = []
    for key in "aabab":
        assert cache.computed(key, lambda key=key: calls.append(key)) is None  # type: ignore[misc]
    assert calls == ["a", "b"]


def test_nothing_is_kept_of_what_fails() -> None:
    cache: LruCache[str, int] = LruCache(2)
    with pytest.raises(ZeroDivisionError):
        cache.computed("a", lambda: 1 // 0)
    assert len(cache) == 0


def test_threads_share_it() -> None:
    cache: LruCache[int, int] = LruCache(3)
    failed: list[Exception] = []

    def work(step: int) -> None:
        try:
            for number in range(3000):
                key = number * step % 7
                assert cache.computed(key, lambda key=key: -key) == -key  # type: ignore[misc]
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
    assert len(cache) <= 3
