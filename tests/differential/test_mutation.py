"""Mutants of code: each changes what a function does, in place, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from code_mutants import apply, mutants

SOURCE = '''
class C:
    def f(self, a: int, b: int = 5) -> list[int]:
        """With 7 numbers."""
        found = []
        for each in range(a):
            if each == 2 and not b:
                continue
            found.append(max(each, b) + 1)
        if a > 4:
            raise ValueError(f"at most {4}, not {a + 1}")
        return found

def g(a, b):
    return [each for each in a if each not in b]
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "mutated.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import mutated  # type: ignore[import-not-found]

    yield mutated
    del sys.modules["mutated"]


def result(call: Callable[..., Any], *given: Any) -> Any:
    try:
        return call(*given)
    except Exception as error:
        return repr(error)


@pytest.mark.slow
def test_mutants_change_what_a_function_returns(module: Any, tmp_path: Path) -> None:
    found = mutants(tmp_path, "mutated.py")
    changes = [(mutant.before.partition(":")[0], mutant.after.partition(":")[0]) for mutant in found]
    assert ("each == 2", "each != 2") in changes
    assert ("not b", "b") in changes
    assert ("each not in b", "each in b") in changes
    assert ("continue", "pass") in changes
    assert [before for before, _ in changes if before in ("4", "a + 1", "5", "7")] == ["4", "4"]  # a > 4
    inputs = [(3, 0), (3, 5), (4, 1), (5, 1)]
    original = module.C.f.__code__, module.g.__code__
    expected = [result(module.C().f, *given) for given in inputs], module.g([1, 2], [2])
    same = []
    for mutant in found:
        assert apply(tmp_path, mutant)
        if ([result(module.C().f, *given) for given in inputs], module.g([1, 2], [2])) == expected:
            same.append(mutant.after)
        module.C.f.__code__, module.g.__code__ = original
    assert same == ["max(b, each)"]
