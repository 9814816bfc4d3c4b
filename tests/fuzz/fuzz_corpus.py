"""Inputs that once reached new code or led to a finding, kept in the repository: a folder for each target.

Their files are compressed (xz): most of a data file is padding.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Sequence
from pathlib import Path

from fuzz_coverage import Coverage
from fuzz_loop import Input, Target

CORPUS = Path(__file__).parent / "corpus"
# What may be kept of a target, compressed, in one input and in all: the corpus is part of every clone.
MOST_INPUT_BYTES = 10 << 10
MOST_BYTES = 12 << 10


def corpus(target: Target) -> list[Input]:
    """The kept inputs of a target."""
    if target.load is None:
        return []
    return [target.load(lzma.decompress(path.read_bytes())) for path in sorted(folder(target).glob("*"))]


def folder(target: Target) -> Path:
    """Where the inputs of a target are kept; former findings are called ``found-...``."""
    return CORPUS / target.name.replace(": ", "-").replace(" ", "-").lower()


def keep(target: Target, first: Sequence[Input], found: Sequence[Input], coverage: Coverage) -> int:
    """Replace the kept inputs by the smallest ones, of them and `found`, that reach what `first` does not.

    How many there are now. Former findings stay.
    """
    if target.load is None:
        return 0

    def reaches_new_code(input: Input) -> bool:
        coverage.start()
        target.read(input)
        return coverage.stop() > 0

    for input in first:
        reaches_new_code(input)
    place = folder(target)
    place.mkdir(parents=True, exist_ok=True)
    findings = sorted(place.glob("found-*"))
    for path in findings:
        reaches_new_code(target.load(lzma.decompress(path.read_bytes())))
    candidates = {input.stored() for input in [*corpus(target), *found]}
    for path in set(place.glob("*")) - set(findings):
        path.unlink()
    count = total = 0
    for packed in sorted(map(lzma.compress, candidates), key=lambda each: (len(each), each)):
        fits = len(packed) <= min(MOST_INPUT_BYTES, MOST_BYTES - total)
        if fits and reaches_new_code(target.load(lzma.decompress(packed))):
            (place / hashlib.sha256(packed).hexdigest()[:12]).write_bytes(packed)
            count += 1
            total += len(packed)
    return count
