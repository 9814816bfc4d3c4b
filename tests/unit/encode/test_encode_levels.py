"""Repetition and definition levels built from Arrow arrays (format 2.1, levels: the worked examples)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.encodings.leaves import Leaf, leaves_of
from lance_engine.errors import SchemaMismatchError
from lance_engine.kernels import LevelBuilder, Levels
from lance_engine.schema_tree import Schema

ITEM, LIST, NULL_ITEM, NULL_LIST, EMPTY_LIST, NULL_EMPTY_LIST = 1, 2, 3, 4, 5, 6


def leaves(array: pa.Array) -> list[Leaf]:
    return leaves_of(array, Schema.from_arrow(pa.schema([("c", array.type)])).fields[0])


def rep(levels: Levels) -> list[int]:
    return np.asarray(levels.rep).view(np.uint16).tolist()


def definitions(levels: Levels) -> list[int]:
    return np.asarray(levels.def_).view(np.uint16).tolist()


def test_list_with_null_and_empty() -> None:
    (leaf,) = leaves(pa.array([[1, 2], None, [], [3]], pa.list_(pa.int32())))
    assert rep(leaf.levels) == [1, 0, 1, 1, 1]
    assert definitions(leaf.levels) == [0, 0, 1, 2, 0]
    assert leaf.levels.layers == [ITEM, NULL_EMPTY_LIST]
    assert leaf.array.to_pylist() == [1, 2, 3]
    assert (leaf.levels.entries, leaf.levels.slots, leaf.levels.rows) == (5, 3, 4)


def test_three_lists_number_their_starts_from_the_inside() -> None:
    rows = [[[[0, 1], [], [2]], [[3]], []], [], [[[4]]]]
    (leaf,) = leaves(pa.array(rows, pa.list_(pa.list_(pa.list_(pa.int8())))))
    assert rep(leaf.levels) == [3, 0, 1, 1, 2, 2, 3, 3]
    assert leaf.levels.layers == [ITEM, EMPTY_LIST, EMPTY_LIST, EMPTY_LIST]
    assert definitions(leaf.levels) == [0, 0, 1, 0, 0, 2, 3, 0]


def test_structs_own_a_level_each_and_the_outer_null_wins() -> None:
    inner = pa.struct([("v", pa.int8())])
    rows = [{"i": {"v": 1}}, {"i": {"v": None}}, {"i": None}, None]
    (leaf,) = leaves(pa.array(rows, pa.struct([("i", inner)])))
    assert leaf.levels.layers == [NULL_ITEM] * 3
    assert definitions(leaf.levels) == [0, 1, 2, 3]
    assert leaf.levels.slots == 4
    assert leaf.levels.valid_slots == 1


def test_no_nulls_and_no_lists_need_no_levels() -> None:
    (leaf,) = leaves(pa.array([{"v": 1}, {"v": 2}]))
    assert leaf.levels.layers == [ITEM, ITEM]
    assert rep(leaf.levels) == definitions(leaf.levels) == []


def test_null_layers_are_those_of_this_page() -> None:
    column = pa.array([1, None, 3, 4])
    assert leaves(column.slice(2))[0].levels.layers == [ITEM]
    assert definitions(leaves(column.slice(1, 2))[0].levels) == [1, 0]


def test_items_below_null_lists_and_null_structs_are_dropped() -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5], pa.int32()), pa.array([1, 2, 3, 4, 5]), mask=pa.array([False, True, False])
    )
    assert leaves(lists)[0].array.to_pylist() == [1, 2, 5]
    struct = pa.StructArray.from_arrays([lists], names=["l"], mask=pa.array([False, False, True]))
    (leaf,) = leaves(struct)
    assert leaf.array.to_pylist() == [1, 2]
    assert definitions(leaf.levels) == [0, 0, 1, 2]
    assert leaf.levels.layers == [ITEM, NULL_LIST, NULL_ITEM]


def test_slices_of_nested_arrays() -> None:
    rows = [[{"a": i, "b": None if i % 2 else f"{i}"} for i in range(n)] or None for n in (3, 0, 1, 4, 2)]
    array = pa.array(rows).slice(1, 3)
    numbers, texts = leaves(array)
    assert numbers.array.to_pylist() == [0, 0, 1, 2, 3]
    assert texts.array.to_pylist() == ["0", "0", None, "2", None]
    assert rep(numbers.levels) == rep(texts.levels) == [1, 1, 1, 0, 0, 0]
    assert numbers.levels.layers == [ITEM, ITEM, NULL_LIST]
    assert texts.levels.layers == [NULL_ITEM, ITEM, NULL_LIST]
    assert definitions(texts.levels) == [2, 0, 0, 1, 0, 1]


def test_statistics_of_levels() -> None:
    (leaf,) = leaves(pa.array([[1], *[[]] * 7, [2, 3, 4], [], []], pa.list_(pa.int8())))
    assert leaf.levels.longest_invisible_run == 7
    assert leaf.levels.budget == 65535


def test_null_in_a_field_declared_without_nulls() -> None:
    schema = Schema.from_arrow(pa.schema([pa.field("s", pa.struct([pa.field("v", pa.int8(), False)]))]))
    nullable = pa.struct([("v", pa.int8())])
    assert leaves_of(pa.array([None, {"v": 1}], nullable), schema.fields[0])
    with pytest.raises(SchemaMismatchError, match=r"column: s\.v"):
        leaves_of(pa.array([{"v": None}], nullable), schema.fields[0])


def test_contradicting_buffers_are_refused() -> None:
    offsets = np.array([0, 5, 2], np.int32)
    with pytest.raises(ValueError, match=r"decrease|outside"):
        LevelBuilder(2).add_list(None, offsets, 32, 0, 2, 9)
    with pytest.raises(ValueError, match="outside"):
        LevelBuilder(2).add_list(None, np.array([0, 5, 20], np.int32), 32, 0, 2, 9)
    with pytest.raises(ValueError, match="shorter"):
        LevelBuilder(3).add_list(None, offsets, 32, 0, 3, 9)
    with pytest.raises(ValueError, match="shorter"):
        LevelBuilder(9).add_item(b"\xff", 0, 9)
    with pytest.raises(ValueError, match="number of slots"):
        LevelBuilder(3).add_item(None, 0, 4)
    with pytest.raises(ValueError, match="leaf"):
        LevelBuilder(3).finish()
