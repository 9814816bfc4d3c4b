"""Repetition and definition levels: how lists and nulls of a whole path become two arrays of small integers.

A path from the top-level column to a leaf has one layer per struct, list, fixed-size list of structs, and one
for the leaf. Each *entry* is a leaf value, or stands for a null or empty list that has none.

* Definition 0: a value. Layers are numbered leaf first; each takes the next levels for its null (and empty)
  state, so a bigger level means something missing further out.
* Repetition: the innermost list is 1, the outermost list N. An entry carries the number of the outermost list
  that starts with it, 0 if it continues the innermost. Every top-level row starts with N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

from reference.values import Bools

Levels = npt.NDArray[np.uint16]
# One entry while levels are built: repetition, definition, and whether it has no slot further in.
Entry = tuple[int, int, bool]


class Layer(IntEnum):
    """The numbers of ``RepDefLayer``."""

    ALL_VALID_ITEM = 1
    ALL_VALID_LIST = 2
    NULLABLE_ITEM = 3
    NULLABLE_LIST = 4
    EMPTYABLE_LIST = 5
    NULL_AND_EMPTY_LIST = 6

    @property
    def is_list(self) -> bool:
        return self not in (Layer.ALL_VALID_ITEM, Layer.NULLABLE_ITEM)

    @property
    def level_count(self) -> int:
        """How many definition levels the layer owns."""
        return {Layer.ALL_VALID_ITEM: 0, Layer.ALL_VALID_LIST: 0, Layer.NULL_AND_EMPTY_LIST: 2}.get(self, 1)

    @property
    def null_level(self) -> int | None:
        """The level of a null, counted from the layer's first one."""
        nullable = (Layer.NULLABLE_ITEM, Layer.NULLABLE_LIST, Layer.NULL_AND_EMPTY_LIST)
        return 1 if self in nullable else None

    @property
    def empty_level(self) -> int | None:
        """The level of an empty list, counted from the layer's first one."""
        return {Layer.EMPTYABLE_LIST: 1, Layer.NULL_AND_EMPTY_LIST: 2}.get(self)


def parse_layers(numbers: Sequence[int]) -> list[Layer]:
    """The layers of a page message, leaf first."""
    try:
        return [Layer(number) for number in numbers]
    except ValueError as error:
        raise UnsupportedFeatureError(f"a layer of unknown kind in {list(numbers)}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """The slots of a struct or leaf layer. `validity` None: all valid."""

    count: int
    validity: Bools | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """The slots of a list layer: int64 offsets[count + 1] into the slots of the next layer inwards."""

    offsets: npt.NDArray[np.int64]
    validity: Bools | None = None

    @property
    def count(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True, eq=False)
class FixedSizeLists:
    """The slots of a fixed-size list of structs: each owns `dimension` slots of the next layer, null or
    not.
    """

    count: int
    dimension: int
    validity: Bools | None = None


Slots = Items | Lists | FixedSizeLists


@dataclass(frozen=True, slots=True, eq=False)
class LevelArrays:
    """Both level arrays (None: all zero) with the layers that explain them and the number of entries."""

    layers: list[Layer]
    repetition: Levels | None
    definition: Levels | None
    count: int


def max_visible(layers: Sequence[Layer]) -> int:
    """The largest definition level of an entry that still owns a value slot."""
    total = 0
    for layer in layers:
        if layer.is_list:
            return total
        total += layer.level_count
    return total


def visible(arrays: LevelArrays) -> Bools:
    """Which entries own a value slot."""
    if arrays.definition is None or not any(layer.is_list for layer in arrays.layers):
        return np.ones(arrays.count, np.bool_)
    return np.asarray(arrays.definition <= max_visible(arrays.layers))


def unravel(arrays: LevelArrays, dimensions: Sequence[int | None]) -> list[Slots]:
    """Level arrays to slots, leaf layer first.

    `dimensions` has one entry per layer: the dimension of a fixed-size list of structs, None for all others.
    """
    layers = arrays.layers
    if len(dimensions) != len(layers):
        raise CorruptFileError(f"the page has {len(layers)} layers, the path to the leaf {len(dimensions)}")
    owner = [0]
    for index, layer in enumerate(layers):
        owner += [sum(each.is_list for each in layers[: index + 1])] * layer.level_count
    definition = [0] * arrays.count if arrays.definition is None else arrays.definition.tolist()
    repetition = None if arrays.repetition is None else arrays.repetition.tolist()
    if definition and max(definition) >= len(owner):
        raise CorruptFileError(f"definition level {max(definition)} with {len(owner) - 1} levels declared")
    list_layers = sum(layer.is_list for layer in layers)
    if repetition and (max(repetition) > list_layers or repetition[0] != list_layers):
        raise CorruptFileError("repetition levels contradict the layers")
    if list_layers and repetition is None:
        if arrays.count:
            raise CorruptFileError("a page of lists has no repetition levels")
        repetition = []

    result: list[Slots] = []
    base = lists = 0
    for layer, dimension in zip(layers, dimensions, strict=True):
        if not layer.is_list:
            if dimension is not None:
                if len(definition) % dimension:
                    raise CorruptFileError(f"{len(definition)} entries for lists of {dimension}")
                definition = definition[::dimension]
            bits = np.array([level <= base for level in definition if owner[level] <= lists], np.bool_)
            validity = bits if layer is Layer.NULLABLE_ITEM else None
            if dimension is None:
                result.append(Items(len(bits), validity))
            else:
                result.append(FixedSizeLists(len(bits), dimension, validity))
            base += layer.level_count
            continue
        assert repetition is not None
        top = base + layer.level_count
        null = None if layer.null_level is None else base + layer.null_level
        empty = None if layer.empty_level is None else base + layer.empty_level
        offsets: list[int] = []
        valid: list[bool] = []
        kept: list[tuple[int, int]] = []
        children = 0
        for rep, level in zip(repetition, definition, strict=True):
            if rep == 0:
                children += 1
                continue
            kept.append((rep - 1, level))
            if owner[level] > lists + 1:
                continue
            offsets.append(children)
            valid.append(level != null and level <= top)
            if level not in (null, empty) and level <= top:
                children += 1
        if result and children != result[-1].count:
            raise CorruptFileError(f"lists of {children} items over {result[-1].count} of them")
        offsets.append(children)
        validity = np.array(valid, np.bool_) if layer.null_level is not None else None
        if validity is None and not all(valid):
            validity = np.array(valid, np.bool_)
        result.append(Lists(np.array(offsets, np.int64), validity))
        repetition = [rep for rep, _ in kept]
        definition = [level for _, level in kept]
        base, lists = top, lists + 1
    return result


def choose_layers(slots: Sequence[Slots]) -> list[Layer]:
    """The smallest layers (leaf first) for slots given leaf first."""
    layers = []
    for slot in slots:
        nullable = slot.validity is not None and not slot.validity.all()
        if not isinstance(slot, Lists):
            layers.append(Layer.NULLABLE_ITEM if nullable else Layer.ALL_VALID_ITEM)
            continue
        empty = np.diff(slot.offsets) == 0
        if slot.validity is not None:
            empty = empty & slot.validity
        if empty.any():
            layers.append(Layer.NULL_AND_EMPTY_LIST if nullable else Layer.EMPTYABLE_LIST)
        else:
            layers.append(Layer.NULLABLE_LIST if nullable else Layer.ALL_VALID_LIST)
    return layers


def ravel(slots: Sequence[Slots], layers: Sequence[Layer] | None = None) -> LevelArrays:
    """Slots, leaf layer first, to level arrays; the inverse of `unravel`.

    Null lists must have no items: whatever Arrow hides below them is dropped before.
    """
    chosen = choose_layers(slots) if layers is None else list(layers)
    list_layers = sum(layer.is_list for layer in chosen)
    current = sum(layer.level_count for layer in chosen)
    entries: list[Entry] = [(0, 0, False)] * slots[-1].count
    for slot, layer in zip(reversed(slots), reversed(chosen), strict=True):
        base = current - layer.level_count
        index = 0
        marked: list[Entry] = []
        lengths = np.diff(slot.offsets).tolist() if isinstance(slot, Lists) else []
        for rep, level, special in entries:
            if special:
                marked.append((rep, level, special))
                continue
            missing = slot.validity is not None and not slot.validity[index]
            outcome = base + 1 if missing and level == 0 else level
            if not isinstance(slot, Lists):
                repeats = slot.dimension if isinstance(slot, FixedSizeLists) else 1
                marked += [(rep, outcome, False)] * repeats
            else:
                start = rep or list_layers
                if outcome:
                    marked.append((start, outcome, True))
                elif lengths[index] == 0:
                    marked.append((start, current, True))
                else:
                    marked += [(start, 0, False)] + [(0, 0, False)] * (lengths[index] - 1)
            index += 1
        entries = marked
        list_layers -= layer.is_list
        current = base
    has_lists = any(layer.is_list for layer in chosen)
    has_levels = any(layer.level_count for layer in chosen)
    return LevelArrays(
        chosen,
        np.array([rep for rep, _, _ in entries], np.uint16) if has_lists else None,
        np.array([level for _, level, _ in entries], np.uint16) if has_levels else None,
        len(entries),
    )
