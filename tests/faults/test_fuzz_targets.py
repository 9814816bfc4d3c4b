"""The targets of `make fuzz`, each for a short time and without sanitizers."""

from __future__ import annotations

import random

import fuzz_decoders
import fuzz_json
import fuzz_layouts
import fuzz_parsers
import fuzz_searches
import fuzz_tables
import fuzz_vectors
import fuzz_words
import pytest
from counts import examples
from fuzz_corpus import CORPUS, MOST_BYTES, corpus, folder
from fuzz_loop import Target
from native_files import NativeFile

TARGETS = [
    *fuzz_decoders.TARGETS,
    *fuzz_layouts.TARGETS,
    *fuzz_tables.TARGETS,
    *fuzz_searches.TARGETS,
    *fuzz_json.TARGETS,
    *fuzz_parsers.TARGETS,
    *fuzz_vectors.TARGETS,
    *fuzz_words.TARGETS,
]
#: Those whose inputs are kept.
KEPT = [target for target in TARGETS if target.load]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.name))
def test_changed_inputs_lead_to_errors_for_bad_files(target: Target) -> None:
    rng = random.Random(target.name)
    seeds = target.seeds()
    for number in range(examples(20)):
        input = seeds[number % len(seeds)]
        assert target.read(input) == ""
        for _ in range(rng.randint(1, 3)):
            input = input.mutated(rng, seeds)
        assert target.read(input) == "", input


@pytest.mark.parametrize("target", KEPT, ids=lambda target: str(target.name))
def test_the_corpus_leads_to_errors_for_bad_files(target: Target) -> None:
    inputs = corpus(target)
    assert inputs
    for input in inputs:
        assert target.read(input) == "", input


def test_the_corpus_is_small_and_has_no_other_files() -> None:
    folders = {folder(target) for target in KEPT}
    assert set(CORPUS.iterdir()) == folders
    for each in folders:
        inputs = [path for path in each.iterdir() if not path.name.startswith("found-")]
        assert sum(path.stat().st_size for path in inputs) <= MOST_BYTES


def test_stored_inputs_are_the_same_when_loaded() -> None:
    for target in KEPT:
        assert target.load is not None
        for seed in target.seeds():
            assert target.load(seed.stored()).stored() == seed.stored()


def test_the_seeds_are_intact() -> None:
    for file in fuzz_layouts.paged_files():
        if "BlobLayout" in file.messages or file.schema.field(0).metadata:
            continue  # blobs are outside of the pages: rebuilding a file loses them
        assert NativeFile.in_memory(file.data, file.schema).table().num_rows == file.rows
