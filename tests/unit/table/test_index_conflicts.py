"""When the commit of an index, and of what moves rows under it, has to be redone."""

from __future__ import annotations

import uuid

import pytest
from lance_engine.format.fragment import DataFile, Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.format.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Operation,
    Overwrite,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
)
from lance_engine.format.transaction import Transaction, parse_transaction, serialize_transaction
from lance_engine.schema_tree import Schema
from lance_engine.table.conflicts import Verdict, check
from pyroaring import BitMap

OK, _, RETRY, INCOMPATIBLE = Verdict


def segment(name: str, *fragments: int, field: int = 0) -> IndexSegment:
    covered = BitMap(fragments) if fragments else None
    files = (("page_data.lance", 5),)
    return IndexSegment(uuid.uuid4(), name, (field,), 3, "BTree", b"", covered, 1, 7, None, files)


def rewrite(*fragments: int) -> Rewrite:
    old = tuple(Fragment(number, (), 1) for number in fragments)
    return Rewrite((RewriteGroup(old, (Fragment(9, (), 1),)),))


def replacement(fragment: int, field: int) -> DataReplacement:
    return DataReplacement(((fragment, DataFile("x.lance", (field,), (0,), 2, 1)),))


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        (CreateIndex((segment("a", 1),)), CreateIndex((segment("b", 1),)), OK),
        (CreateIndex((segment("a", 1),)), CreateIndex((segment("a", 2),)), RETRY),
        (CreateIndex((), (segment("a", 1),)), CreateIndex((segment("a", 2),)), RETRY),
        (CreateIndex((segment("a", 1),)), rewrite(1, 2), RETRY),
        (CreateIndex((segment("a", 3),)), rewrite(1, 2), OK),
        (CreateIndex((), (segment("a", 1),)), rewrite(1), RETRY),
        (CreateIndex((segment("a"),)), rewrite(1), RETRY),
        (rewrite(1), CreateIndex((segment("a", 1),)), RETRY),
        (rewrite(1), CreateIndex((segment("a", 2),)), OK),
        (CreateIndex((segment("a", 1, field=4),)), replacement(1, 4), RETRY),
        (CreateIndex((segment("a", 1, field=4),)), replacement(1, 5), OK),
        (replacement(1, 4), CreateIndex((segment("a", 1, field=4),)), RETRY),
        (CreateIndex((segment("a", 1),)), Append(()), OK),
        (Append(()), CreateIndex((segment("a", 1),)), OK),
        (CreateIndex((segment("a", 1),)), Overwrite((), Schema(())), INCOMPATIBLE),
    ],
)
def test_verdicts(mine: Operation, theirs: Operation, verdict: Verdict) -> None:
    assert check(mine, theirs) is verdict


def test_an_index_comes_back_from_its_transaction() -> None:
    operation = CreateIndex((segment("a", 1, 70_000),), (segment("b", 2),))
    transaction = Transaction(3, "u", operation)
    assert parse_transaction(serialize_transaction(transaction)) == transaction


def test_a_rewriting_names_the_indices_that_follow() -> None:
    old = uuid.uuid4()
    operation = Rewrite(rewrite(1).groups, (RewrittenIndex(old, segment("a", 9)),))
    data = serialize_transaction(Transaction(3, "u", operation))
    assert old.bytes in data
    found = parse_transaction(data).operation
    assert isinstance(found, Rewrite)
    assert found.groups == operation.groups
