"""Handmade files of random layouts: the reference reader and pylance both find what was put in."""

from __future__ import annotations

import tempfile
from pathlib import Path

import lance.file
from corpus import difference
from counts import examples
from hypothesis import HealthCheck, given, note, settings
from random_files import RandomFile, random_files
from reference import file as reference_file

SETTINGS = settings(max_examples=examples(37), deadline=None, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(random_files())
def test_reference_reads_random_layouts(file: RandomFile) -> None:
    note("\n".join(file.notes))
    assert difference(reference_file.read_table(file.data, file.table.schema), file.table) == ""


@SETTINGS
@given(random_files(most_pages=1))
def test_pylance_reads_random_layouts(file: RandomFile) -> None:
    """The handmade files are legal, so that what our reader does with them means something.

    One page only: pylance 14 fails on its own files too when one page of a list below a struct has nulls and
    the next has none.
    """
    note("\n".join(file.notes))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.lance"
        path.write_bytes(file.data)
        assert difference(lance.file.LanceFileReader(str(path)).read_all().to_table(), file.table) == ""
