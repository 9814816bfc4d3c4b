"""The targets of `make fuzz`, for a moment each and without sanitizers."""

from __future__ import annotations

import random

import fuzz_layouts
import fuzz_parsers
import pytest
from fuzz_loop import Target
from native_files import NativeFile


@pytest.mark.parametrize(
    "target", [*fuzz_layouts.TARGETS, *fuzz_parsers.TARGETS], ids=lambda target: str(target.name)
)
def test_changed_inputs_lead_to_errors_for_bad_files(target: Target) -> None:
    rng = random.Random(target.name)
    seeds = target.seeds()
    for number in range(40):
        input = seeds[number % len(seeds)]
        assert target.read(input) == ""
        for _ in range(rng.randint(1, 3)):
            input = input.mutated(rng, seeds)
        assert target.read(input) == "", input


def test_the_seeds_are_intact() -> None:
    for file in fuzz_layouts.paged_files():
        if "BlobLayout" in file.messages or file.schema.field(0).metadata:
            continue  # blobs lie outside of the pages: they are lost where a file is put together anew
        assert NativeFile.in_memory(file.data, file.schema).table().num_rows == file.rows
