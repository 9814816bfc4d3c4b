"""A target with valid files of random layouts: reading them returns what was written."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from corpus import difference
from damage import damaged
from fuzz_files import RawFile
from fuzz_layouts import read_file
from fuzz_loop import Target
from hypothesis import HealthCheck, Phase, given, seed, settings
from native_files import NativeFile, without_dictionaries
from random_files import RandomFile, random_files


@dataclass(frozen=True)
class AnyFile:
    """A new file each time."""

    file: RandomFile | None = None

    def mutated(self, rng: random.Random, others: Sequence[AnyFile]) -> AnyFile:
        found: list[RandomFile] = []

        def keep(file: RandomFile) -> None:
            found.append(file)

        options = settings(
            max_examples=1,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seed(rng.getrandbits(62))(options(given(random_files())(keep)))()
        return AnyFile(next((file for file in found if file.table.num_rows), None))

    def stored(self) -> bytes:
        return self.file.data if self.file is not None else b""


def read_random_file(input: AnyFile) -> str:
    """The intact file reads as its table; four damaged copies lead to nothing worse than errors."""
    file = input.file
    if file is None:
        return ""
    field = file.table.schema.field(0)
    expected = file.table.cast(file.table.schema.set(0, field.with_type(without_dictionaries(field.type))))
    problem = difference(NativeFile.in_memory(file.data, file.table.schema).table(), expected)
    for number in range(4):
        copy = RawFile(damaged(file.data, number), file.table.schema, file.table.num_rows)
        problem = problem or read_file(copy)
    return problem


TARGETS = [Target("random files", lambda: [AnyFile()], read_random_file)]
