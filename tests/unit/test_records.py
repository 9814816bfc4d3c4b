"""Records behave as frozen dataclasses with slots."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import weakref
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from lance_engine.records import record


@record
class Ours:
    """A point."""

    x: int
    label: str = "none"
    parts: list[int] = field(default_factory=list, hash=False)
    note: str = field(default="", compare=False, repr=False)
    limit: ClassVar[int] = 3

    @property
    def double(self) -> int:
        return 2 * self.x


@dataclass(frozen=True, slots=True)
class Theirs:
    """A point."""

    x: int
    label: str = "none"
    parts: list[int] = field(default_factory=list, hash=False)
    note: str = field(default="", compare=False, repr=False)
    limit: ClassVar[int] = 3

    @property
    def double(self) -> int:
        return 2 * self.x


@record
class One:
    value: object


@record
class Checked:
    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("negative")


@record(eq=False, weakref_slot=True)
class Same:
    value: int


@record
class Own:
    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and abs(self.value) == abs(other.value)

    def __str__(self) -> str:
        return f"<{self.value}>"


@record
class Longer(One):
    more: int = 0


GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, "a"), {}),
    ((1, "a", [5]), {"note": "n"}),
    ((), {"x": 1, "label": "a"}),
    ((2,), {"note": "other"}),
    ((2,), {}),
]


def said(value: object) -> str:
    return repr(value).replace("Theirs", "Ours")


@pytest.mark.parametrize(("args", "kwargs"), GIVEN)
def test_instances_are_those_of_a_dataclass(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    ours, theirs = Ours(*args, **kwargs), Theirs(*args, **kwargs)
    assert said(ours) == said(theirs)
    assert hash(ours) == hash(theirs)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert dataclasses.astuple(ours) == dataclasses.astuple(theirs)
    assert said(dataclasses.replace(ours, x=9)) == said(dataclasses.replace(theirs, x=9))
    assert ours != theirs
    assert ours.double == theirs.double
    for copied in (pickle.loads(pickle.dumps(ours)), copy.copy(ours), copy.deepcopy(ours)):
        assert copied == ours
        assert copied.note == ours.note
    match ours:
        case Ours(x, label):
            assert (x, label) == (theirs.x, theirs.label)


def test_equality_is_that_of_a_dataclass() -> None:
    for left, left_named in GIVEN:
        for right, right_named in GIVEN:
            ours = Ours(*left, **left_named) == Ours(*right, **right_named)
            assert ours == (Theirs(*left, **left_named) == Theirs(*right, **right_named))


def test_a_record_does_not_change() -> None:
    point = Ours(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.unknown = 2  # type: ignore[attr-defined]
    assert not hasattr(point, "__dict__")
    assert Ours(1).parts is not point.parts


@pytest.mark.parametrize("wrong", [((), {}), ((1, 2, 3, 4, 5), {}), ((1,), {"y": 2}), ((1,), {"x": 2})])
def test_wrong_arguments_are_type_errors(wrong: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    with pytest.raises(TypeError) as theirs:
        Theirs(*wrong[0], **wrong[1])
    with pytest.raises(TypeError) as ours:
        Ours(*wrong[0], **wrong[1])
    assert str(ours.value) == str(theirs.value).replace("Theirs", "Ours")


def test_a_single_field() -> None:
    assert One((1, 2)) == One((1, 2)) != One((2, 1))
    assert hash(One((1, 2))) == hash(One((1, 2)))
    assert repr(One(None)) == "One(value=None)"


def test_what_a_class_defines_stays() -> None:
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)
    first, second = Same(1), Same(1)
    assert first != second
    assert len({first, second, first}) == 2
    assert weakref.ref(first)() is first
    assert Own(1) == Own(-1)
    assert str(Own(1)) == "<1>"
    assert hash(Own(1)) == hash(Own(1))


def test_a_record_may_have_more_fields_than_its_base() -> None:
    assert repr(Longer(1, 2)) == "Longer(value=1, more=2)"
    assert Longer(1, 2) == Longer(1, 2) != Longer(1)
    assert pickle.loads(pickle.dumps(Longer(1, 2))) == Longer(1, 2)


def test_signatures_are_those_of_a_dataclass() -> None:
    ours, theirs = inspect.signature(Ours).parameters, inspect.signature(Theirs).parameters
    assert list(ours) == list(theirs)
    assert [each.annotation for each in ours.values()] == [each.annotation for each in theirs.values()]
    assert Ours.__doc__ == "A point."
    assert Ours.__match_args__ == Theirs.__match_args__
