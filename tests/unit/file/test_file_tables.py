"""Files whose own schema says what their columns are, such as those of indices."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.file.table import FileTable
from lance_engine.format.pb import file_pb2


def reader_of(*fields: tuple[str, str, int]) -> Any:
    schema = file_pb2.Schema()
    for number, (name, kind, parent) in enumerate(fields):
        schema.fields.add(name=name, logical_type=kind, id=number, parent_id=parent)
    leaves = sum(kind != "list" for _, kind, _ in fields)
    return SimpleNamespace(
        placed=nullcontext,
        descriptor=SimpleNamespace(schema=schema, length=1),
        version="2.1",
        num_columns=leaves,
    )


def test_lists_have_one_field() -> None:
    assert FileTable(reader_of(("a", "list", -1), ("item", "int32", 0))).rows == 1
    with pytest.raises(CorruptFileError, match=r"needs one child, but has 2 .*column: a"):
        FileTable(reader_of(("a", "list", -1), ("item", "int32", 0), ("more", "int32", 0)))
    with pytest.raises(CorruptFileError, match="needs one child, but has 0"):
        FileTable(reader_of(("a", "list", -1), ("b", "int32", -1)))
