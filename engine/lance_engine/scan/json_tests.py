"""What kernels find out about the text of JSON documents from their stored form, without making the text.

Strings are stored as they are, and only written with escapes and quotes. So a document whose text contains
letters that can only be in a string has most of these letters among its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from lance_engine import kernels
from lance_engine.expr.build import conjunction, disjunction
from lance_engine.expr.tree import And, Column, Match, Node, Or
from lance_engine.scan.native_tests import MOST_TESTS, NativeTests, like_pieces

#: Runs of characters that are all in a string, in a number, or in a constant: none is between these.
_RUNS: Final = re.compile(r'[^"\\{}\[\]:,\x00-\x1f]+')
#: Such runs that need not be in a string, or may be a part of an escape, which stands for another character.
_OF_NUMBERS: Final = re.compile(r"[0-9.eE+-]+|u?0{0,2}[01]?[0-9a-f]?")
_CONSTANTS: Final = ("true", "false", "null")
#: What a run may have of an escape before it: ``\n``, or ``\u001f``.
_ESCAPE_ENDS: Final = tuple(
    re.compile(end)
    for end in ("u00[01][0-9a-f]", "00[01][0-9a-f]", "0[01][0-9a-f]", "[01][0-9a-f]", "[0-9a-f]", "[bfnrt]")
)
#: Shorter texts are in too many documents, by chance as well.
_SHORTEST: Final = 3


def json_tests(nodes: Sequence[Node]) -> NativeTests | None:
    """A condition that is true wherever `nodes` over the text of documents are; None if none is found."""
    tests: dict[str, tuple[str, kernels.ValueTest]] = {}
    found = _necessary(conjunction(nodes), tests)
    return (
        None if found is None or len(tests) > MOST_TESTS else NativeTests(found, tests, of_stored_json=True)
    )


def _necessary(node: Node, tests: dict[str, tuple[str, kernels.ValueTest]]) -> Node | None:
    match node:
        case And(operands):
            known = [part for operand in operands if (part := _necessary(operand, tests)) is not None]
            return conjunction(known) if known else None
        case Or(operands):
            parts = [_necessary(operand, tests) for operand in operands]
            known = [part for part in parts if part is not None]
            return disjunction(known) if len(known) == len(parts) else None
        case Match(kind, Column() as column, pattern) if kind != "ilike":
            pieces = like_pieces(pattern, "%_") if kind == "like" else [pattern]
            text = max(map(stored_text, pieces or [""]), key=len)
            if len(text) < _SHORTEST:
                return None
            name = f"test {len(tests)}"
            tests[name] = column.parts[0], kernels.stored_json_test(text.encode())
            return Column((name,), pa.bool_())
        case _:
            return None


def stored_text(piece: str) -> str:
    """The longest text that documents certainly store if their text contains `piece`; maybe empty."""
    return max(map(_without_escape, _RUNS.findall(piece)), key=len, default="")


def _without_escape(run: str) -> str:
    if _OF_NUMBERS.fullmatch(run) or any(run in constant for constant in _CONSTANTS):
        return ""
    ends = (found.end() for end in _ESCAPE_ENDS if (found := end.match(run)))
    return run[max(ends, default=0) :]
