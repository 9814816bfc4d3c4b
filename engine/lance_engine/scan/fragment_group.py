"""Reads several small fragments as one: opening each of their files costs more than decoding its rows.

Local files are mapped. Remote files are included if they are fetched completely anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.arrow_values import of_numpy
from lance_engine.errors import LanceError, Placed, StorageError
from lance_engine.file.contents import TAIL_SIZE, FileContents
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.file_group import FileGroup
from lance_engine.scan.code_columns import CodeColumn
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.layout import Names, layout_of
from lance_engine.scan.paths import top_level_fields
from lance_engine.scan.plan import RowRanges
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.selection import Selection
from lance_engine.scan.system import ROW_ADDRESS, ROW_ID
from lance_engine.scan.touched import FragmentRows

if TYPE_CHECKING:
    from lance_engine.format.fragment import DataFile, Fragment
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot

U32Array = npt.NDArray[np.uint32]
I64Array = npt.NDArray[np.int64]

# Versions of files that kernels can open.
_VERSIONS = frozenset([(2, 1), (2, 2)])
# Maximum number of fragments in the first group; each later group has up to four times as many.
_FIRST_FRAGMENTS = 4


class GroupUnreadableError(Exception):
    """Something is damaged or unknown to the kernels: reading the fragments one by one reports it."""


class FragmentGroup(RowsReader):
    """Fragments of files with the same columns; their rows are numbered consecutively."""

    def __init__(
        self,
        snapshot: Snapshot,
        fragments: Sequence[Fragment],
        reader_for: Callable[[int], FragmentReader],
    ) -> None:
        super().__init__(snapshot, layout_of(snapshot, fragments[0]))
        self._fragments = fragments
        self._reader_for = reader_for
        ends = np.cumsum([fragment.physical_rows for fragment in fragments], dtype=np.int64)
        self._rows = int(ends[-1])
        self._starts: I64Array = np.append(0, ends[:-1])
        self._ids = np.array([fragment.id for fragment in fragments], dtype=np.uint64)
        self._forget_files()

    def evict(self) -> None:
        super().evict()
        self._forget_files()

    def _forget_files(self) -> None:
        self._files: dict[int, FileGroup] = {}
        self._contents: dict[int, list[FileContents]] = {}

    @property
    def is_local(self) -> bool:
        """Whether the files are mapped, so that nothing needs to be fetched."""
        return self._snapshot.is_local

    def contents(self, names: Names, coded: frozenset[str]) -> list[tuple[FileContents, int]]:
        """The remote files with some columns, each with its first row.

        They are fetched completely when a column is first read.
        """
        with self.placed():
            numbers = self._layout.projected(tuple(names), coded.intersection(names)).columns
            return [
                (file, start)
                for number in numbers
                for file, start in zip(self._opened(number), self._starts.tolist(), strict=True)
            ]

    def fetch_deletions(self) -> None:
        """Read the deletion files of all fragments together."""
        self._snapshot.fetch_deletions(self._fragments)

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def fragment_rows(self) -> FragmentRows:
        return FragmentRows(self._ids.tolist(), self._starts)

    @property
    def has_chunks(self) -> bool:
        return True

    def apart(self, selection: Selection) -> Iterator[tuple[FragmentReader, Selection]]:
        """The rows of a selection, fragment by fragment."""
        for number, fragment in enumerate(self._fragments):
            start = int(self._starts[number])
            own = selection.between(start, start + fragment.physical_rows)
            if own is not None:
                yield self._reader_for(fragment.id), own

    def deleted(self) -> U32Array | None:
        if all(fragment.deletion_file is None for fragment in self._fragments):
            return None
        offsets = [
            deleted + np.uint32(start)
            for fragment, start in zip(self._fragments, self._starts.tolist(), strict=True)
            if (deleted := self._snapshot.deleted_rows(fragment)) is not None
        ]
        return np.concatenate(offsets)

    def system_column(self, name: str, begin: int, end: int) -> pa.Array:
        return self.system_values(name, np.arange(begin, end, dtype=np.uint32))

    def system_values(self, name: str, rows: U32Array) -> pa.Array:
        owners = np.searchsorted(self._starts, rows, "right") - 1
        offsets = (rows - self._starts[owners]).astype(np.uint32)
        if name == ROW_ADDRESS or (name == ROW_ID and not self._snapshot.has_stable_row_ids):
            return of_numpy((self._ids[owners] << np.uint64(32)) + offsets)
        parts = [
            self._reader_for(int(self._ids[owner])).system_values(name, offsets[owners == owner])
            for owner in np.unique(owners).tolist()
        ]
        return pa.concat_arrays(parts)

    def blobs(self, leaf: Field, descriptors: pa.StructArray) -> pa.Array:
        raise GroupUnreadableError  # every fragment has its own files of blobs

    def placed(self) -> Placed:
        return Placed(self._place_error)

    @staticmethod
    def _place_error(error: BaseException) -> GroupUnreadableError | None:
        if isinstance(error, StorageError):
            return None  # it would only be fetched again
        known = (LanceError, kernels.CorruptDataError, kernels.UnsupportedError, RuntimeError, OSError)
        return GroupUnreadableError(str(error)) if isinstance(error, known) else None

    def _fetch_metadata(self, columns: Mapping[int, Sequence[int]]) -> None:
        pass  # the files are in memory as a whole

    def _builder(self, field: Field) -> FieldBuilder:
        return FieldBuilder(self._place, self.rows)

    def _place(self, field: Field) -> tuple[FileGroup, int]:
        number, column = self._layout.places[field.id]
        group = self._files.get(number)
        if group is None:
            group = self._files.setdefault(number, self._open(number))
        return group, column

    def _open(self, number: int) -> FileGroup:
        if not self.is_local:
            rows = [fragment.physical_rows for fragment in self._fragments]
            return FileGroup.fetched(self._opened(number), rows)
        places = []
        for fragment in self._fragments:
            file = fragment.files[number]
            store, path = self._snapshot.data_file_location(file)
            local = store.local_path(path)
            if local is None:
                raise GroupUnreadableError(f"{path} is not local")
            places.append((local, file.file_size, fragment.physical_rows))
        return FileGroup.mapped(places)

    def _opened(self, number: int) -> list[FileContents]:
        """The remote files with this number of each fragment, if nothing of them was fetched yet."""
        contents = self._contents.get(number)
        if contents is None:
            files = [fragment.files[number] for fragment in self._fragments]
            places = [(self._snapshot.data_file_location(file), file.file_size) for file in files]
            contents = [FileContents(store, path, size=size) for (store, path), size in places]
            contents = self._contents.setdefault(number, contents)
        return contents


class FragmentGrouping:
    """Groups the neighbouring fragments of a snapshot that are read as one."""

    def __init__(
        self,
        snapshot: Snapshot,
        names: Collection[str | Field | CodeColumn],
        most_rows: int,
        *,
        few: bool = False,
    ) -> None:
        """For scans of the columns `names`, in batches of up to `most_rows` rows, of `few` rows in total."""
        self.snapshot = snapshot
        self._most_rows = most_rows
        fields = top_level_fields(snapshot.schema, names)
        #: maximum remote data to fetch if few rows are needed
        self._fetches = not few and not snapshot.is_local
        self._possible = not any(node.is_blob_v2 for field in fields for node in field.walk())
        self._local: dict[int | None, bool] = {}

    def takes(self, fragment: Fragment) -> bool:
        """Whether a fragment is small and of files that can be read together with others."""
        return (
            self._possible
            and 0 < 2 * fragment.physical_rows <= self._most_rows
            and all(
                (file.major_version, file.minor_version) in _VERSIONS and self._is_read_whole(file)
                for file in fragment.files
            )
        )

    def joins(self, group: Sequence[Fragment], rows: int, fragment: Fragment) -> bool:
        """Whether a fragment can be added to a group of `rows` rows."""
        first = group[0].files
        return (
            rows + fragment.physical_rows <= self._most_rows
            and len(fragment.files) == len(first)
            and all(
                file.fields == other.fields and file.column_indices == other.column_indices
                for file, other in zip(first, fragment.files, strict=True)
            )
        )

    def give_up(self) -> None:
        """Stop grouping: something about the files requires the interpreter."""
        self._possible = False

    def _is_read_whole(self, file: DataFile) -> bool:
        if self._is_local(file.base_id):
            return not self._fetches  # a mapped file cannot be among fetched ones
        return self._fetches and 0 < (file.file_size or 0) <= TAIL_SIZE

    def _is_local(self, base_id: int | None) -> bool:
        if base_id not in self._local:
            try:
                store = self.snapshot.store if base_id is None else self.snapshot.base_store(base_id)
                self._local[base_id] = store.local_path("data") is not None
            except LanceError:  # the error is raised where the file is needed
                self._local[base_id] = False
        return self._local[base_id]


def together(
    plan: Iterable[tuple[Fragment, list[RowRanges]]],
    grouping: FragmentGrouping,
    reader_for: Callable[[int], FragmentReader],
    limit: int | None,
) -> Iterator[tuple[RowsReader, list[RowRanges]]]:
    """The remaining rows of fragments, with completely remaining neighbours combined.

    The first groups are small, so that callers who need few rows do not wait for many files. If all rows
    count, no group extends beyond the fragment in which `limit` rows are complete: later rows are almost
    never read.
    """
    group: list[Fragment] = []
    rows, most, tested = 0, _FIRST_FRAGMENTS, False
    left = math.inf if limit is None else limit

    def joined() -> tuple[RowsReader, list[RowRanges]]:
        reader = (
            FragmentGroup(grouping.snapshot, group, reader_for) if len(group) > 1 else reader_for(group[0].id)
        )
        return reader, [RowRanges(np.array([[0, rows]], dtype=np.int64), tested)]

    for fragment, parts in plan:
        fits = _is_whole(parts, fragment) and grouping.takes(fragment)
        if group and not (
            fits
            and len(group) < most
            and (tested or rows < left)
            and parts[0].tested == tested
            and grouping.joins(group, rows, fragment)
        ):
            yield joined()
            left -= 0 if tested else rows
            group, rows, most = [], 0, 4 * most
        if fits:
            group.append(fragment)
            rows, tested = rows + fragment.physical_rows, parts[0].tested
        else:
            yield reader_for(fragment.id), parts
            left -= sum(part.rows for part in parts if not part.tested)
    if group:
        yield joined()


def _is_whole(parts: Sequence[RowRanges], fragment: Fragment) -> bool:
    return len(parts) == 1 and parts[0].ranges.tolist() == [[0, fragment.physical_rows]]
