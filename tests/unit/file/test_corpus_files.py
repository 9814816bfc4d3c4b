"""The data files of the corpus, each written once by pylance, through all our readers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from corpus import Case, all_cases, blob_cases, by_kind, difference
from lance_engine.encodings.describe import describe_page
from lance_engine.file.reader import FileReader
from lance_engine.io.memory import MemoryStore
from native_files import NativeFile, check_everywhere
from pylance_files import write_file
from reference import file as reference_file


@pytest.mark.sampled(35)
@pytest.mark.parametrize("pairs", by_kind([*all_cases(), *blob_cases()], with_2_0=True))
def test_reads_what_pylance_writes(
    tmp_path: Path, pairs: list[tuple[Case, str]], subtests: pytest.Subtests
) -> None:
    for case, version in pairs:
        table = case.build()
        path = tmp_path / f"{case.mix}-{version}.lance"
        data = write_file(path, table, version)
        ranges, rows = random_picks(table.num_rows)
        with subtests.test(case.name, version=version, reader="kernels, from memory"):
            check_everywhere(NativeFile.in_memory(data, table.schema), table, ranges, rows)
        with subtests.test(case.name, version=version, reader="kernels, mapped"):
            check_everywhere(NativeFile.mapped(path, table.schema), table, ranges, rows)
        if version == "2.0" or case.group == "blob":
            continue
        with subtests.test(case.name, version=version, reader="page tables"):
            check_page_tables(data)
        with subtests.test(case.name, version=version, reader="reference"):
            assert difference(reference_file.read_table(data, table.schema), table) == ""


def random_picks(count: int) -> tuple[list[list[int]], list[int]]:
    rng = np.random.default_rng(count)
    ranges = [sorted(rng.integers(0, count + 1, 2).tolist()) for _ in range(4)]
    rows = np.unique(rng.integers(0, max(count, 1), 9)).tolist()
    return [each for each in ranges if each[0] < each[1]], rows


def check_page_tables(data: bytes) -> None:
    """The kernels open every page, and have a name for all that is in it."""
    store = MemoryStore()
    store.put("file", data)
    file = FileReader(store, "file")
    for column in range(file.num_columns):
        pages, described = file.open_pages(column), file.column_metadata(column).pages
        assert [page.rows for page in pages] == [page.rows for page in described]
        for page in described:
            text = describe_page(page.encoding)
            assert text.startswith(("mini-block(", "full-zip(", "constant", "blob"))
            assert "unknown" not in text
