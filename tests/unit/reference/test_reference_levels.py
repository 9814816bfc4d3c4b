"""Building levels and splitting them again are inverse."""

from __future__ import annotations

import numpy as np
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.levels import (
    FixedSizeLists,
    Items,
    Layer,
    Lists,
    Slots,
    choose_layers,
    max_visible,
    parse_layers,
    ravel,
    unravel,
    visible,
)


@st.composite
def slot_trees(draw: st.DrawFn) -> list[Slots]:
    """Slots of a random path, leaf first. Slots below something null are null, null lists are empty."""
    kinds = [*draw(st.lists(st.sampled_from(["item", "list", "fixed"]), max_size=4)), "item"]
    if "list" in kinds:
        kinds = ["item" if kind == "fixed" else kind for kind in kinds]
    count = draw(st.integers(0, 6))
    alive = np.ones(count, np.bool_)
    slots: list[Slots] = []
    for kind in kinds:
        flags = draw(st.lists(st.booleans(), min_size=len(alive), max_size=len(alive)))
        alive = alive & np.array(flags, np.bool_)
        if kind == "item":
            slots.append(Items(len(alive), alive))
        elif kind == "fixed":
            dimension = draw(st.integers(1, 3))
            slots.append(FixedSizeLists(len(alive), dimension, alive))
            alive = np.repeat(alive, dimension)
        else:
            lengths = [draw(st.integers(0, 3)) if valid else 0 for valid in alive]
            offsets = np.concatenate([[0], lengths]).cumsum().astype(np.int64)
            slots.append(Lists(offsets, alive))
            alive = np.ones(int(offsets[-1]), np.bool_)
    return slots[::-1]


def plain(slots: list[Slots]) -> list[object]:
    return [
        (
            slot.offsets.tolist() if isinstance(slot, Lists) else slot.count,
            [True] * slot.count if slot.validity is None else slot.validity.tolist(),
        )
        for slot in slots
    ]


@settings(max_examples=examples(75), deadline=None)
@given(slot_trees(), st.booleans())
def test_unravel_inverts_ravel(slots: list[Slots], superset: bool) -> None:
    dimensions = [slot.dimension if isinstance(slot, FixedSizeLists) else None for slot in slots]
    layers = choose_layers(slots)
    if superset:
        layers = [Layer.NULL_AND_EMPTY_LIST if layer.is_list else Layer.NULLABLE_ITEM for layer in layers]
    arrays = ravel(slots, layers)
    assert int(visible(arrays).sum()) == slots[0].count
    assert plain(unravel(arrays, dimensions)) == plain(slots)


def test_visibility_ends_at_the_first_list() -> None:
    assert max_visible(parse_layers([3, 3, 6, 3])) == 2
    assert max_visible(parse_layers([3, 6, 3, 3])) == 1
