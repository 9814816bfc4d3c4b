"""The fragments of a manifest, kept in their stored form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.errors import CorruptFileError
from lance_engine.format.fragment import Fragment, fragment_from_message, fragment_to_message
from lance_engine.format.pb import table_pb2

U64Array = npt.NDArray[np.uint64]

# Fragments in stored form, and their summaries from the kernels: size, id, rows, deleted rows, flags.
_Part: TypeAlias = tuple[bytes, U64Array]

# Flags of the summaries.
_DELETIONS: Final = np.uint64(1)
_SPILLED: Final = np.uint64(2)

# The limits of row addresses.
_LARGEST_ID: Final = np.uint64(2**32 - 1)
_MOST_ROWS: Final = np.uint64(2**32)

# A row count above both is compared with the files.
_MANY_ROWS: Final = np.uint64(2**26)
_ROWS_PER_BYTE: Final = 64


class FragmentList(Sequence[Fragment]):
    """The fragments of a manifest, each parsed when it is first requested.

    Otherwise, reading or appending a few fragments of a table with many thousand would spend most of its time
    here. `stored` contains the fragments as fields of the serialized manifest; CorruptFileError if it is
    invalid. It is written back unchanged.
    """

    def __init__(self, stored: bytes, summaries: U64Array | None = None) -> None:
        self.stored = stored
        self._summaries: U64Array = _summaries(stored) if summaries is None else summaries
        self._rows, self._deleted, self._flags = self._summaries[2:]
        # The end of each fragment in the stored form.
        self._ends = np.cumsum(self._summaries[0])
        self._fragments: list[Fragment | None] = [None] * len(self.ids)
        # Fragments that are not in the parsed manifest, see `changed`.
        self.added: tuple[Fragment, ...] = ()
        for place in np.flatnonzero((self.ids > _LARGEST_ID) | (self._rows > _MOST_ROWS)).tolist():
            _ = self[place]  # raises: the totals below assume fragments within the address space

    @property
    def ids(self) -> U64Array:
        """The ids of all fragments, in order."""
        ids: U64Array = self._summaries[1]
        return ids

    def all_rows_known(self) -> bool:
        """Whether every fragment records its number of rows."""
        unknown = np.flatnonzero(self._rows == 0).tolist()
        return not any(self[place].files for place in unknown)

    def all_deletions_counted(self) -> bool:
        """Whether every fragment with a deletion file records its number of deleted rows."""
        return bool((self._deleted[(self._flags & _DELETIONS) != 0] > 0).all())

    def doubtful_rows(self) -> list[int]:
        """The positions of fragments with more rows than their file sizes make plausible.

        Constant values take no space, so such a number may be correct.
        """
        many = np.flatnonzero(self._rows > _MANY_ROWS).tolist()
        return [place for place in many if self._rows[place] > _ROWS_PER_BYTE * _file_bytes(self[place])]

    def repeats_ids(self) -> bool:
        """Whether two fragments have the same id."""
        ids = self.ids
        return not (ids[1:] > ids[:-1]).all() and len(np.unique(ids)) < len(ids)

    def any_deletions(self) -> bool:
        """Whether some fragment has a deletion file."""
        return bool((self._flags & _DELETIONS).any())

    def any_spilled(self) -> bool:
        """Whether some fragment has row lineage in a data file."""
        return bool((self._flags & _SPILLED).any())

    def changed(
        self, replaced: Mapping[int, Fragment], removed: Collection[int], added: Iterable[Fragment]
    ) -> FragmentList:
        """The list with some fragments, by id, replaced or removed, and others appended.

        Other fragments are not parsed: the cost of a commit depends on its changes, not on the table.
        """
        touched = np.array([*replaced, *removed], dtype=np.uint64)
        places = np.flatnonzero(np.isin(self.ids, touched)).tolist() if len(touched) else []
        parts, fragments, states = list[_Part](), list[Fragment | None](), list[Fragment]()
        done = 0
        for place in places:
            parts.append(self._part(done, place))
            fragments += self._fragments[done:place]
            done = place + 1
            number = int(self.ids[place])
            if number not in removed:
                states.append(replaced[number])
                parts.append(_stored_part([replaced[number]]))
                fragments.append(replaced[number])
        new = list(added)
        parts += [self._part(done, len(self)), _stored_part(new)]
        stored, summaries = zip(*parts, strict=True)
        result = FragmentList(b"".join(stored), np.concatenate(summaries, axis=1))
        result._fragments = [*fragments, *self._fragments[done:], *new]
        result.added = (*self.added, *states, *new)
        return result

    def physical_rows(self) -> int:
        """The number of rows including deleted ones; fragments without a recorded number count as 0."""
        return int(sum(self._rows.tolist()))

    def live_rows(self) -> int | None:
        """The number of rows that are not deleted; None if a fragment does not record it, or wrongly."""
        total = self.physical_rows()
        with_deletions = (self._flags & _DELETIONS) != 0
        if with_deletions.any():
            rows, deleted = self._rows[with_deletions], self._deleted[with_deletions]
            if not ((deleted > 0) & (deleted <= rows)).all():
                return None
            total -= int(sum(deleted.tolist()))
        return total

    def __len__(self) -> int:
        return len(self._fragments)

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fragment, ...]: ...
    def __getitem__(self, index: int | slice) -> Fragment | tuple[Fragment, ...]:
        if isinstance(index, slice):
            return tuple([self[position] for position in range(*index.indices(len(self)))])
        fragment = self._fragments[index]
        if fragment is None:
            place = index % len(self)
            field = self._part(place, place + 1)[0]
            try:
                message = table_pb2.Manifest.FromString(field).fragments[0]
            except DecodeError as error:
                raise CorruptFileError("The description of a fragment cannot be parsed") from error
            fragment = self._fragments[place] = fragment_from_message(message)
        return fragment

    def __iter__(self) -> Iterator[Fragment]:
        return (self[position] for position in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FragmentList) and self.stored == other.stored:
            return True
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[Fragment, ...]], tuple[tuple[Fragment, ...]]]:
        return tuple, (tuple(self),)

    def _part(self, first: int, last: int) -> _Part:
        begin = int(self._ends[first - 1]) if first else 0
        end = int(self._ends[last - 1]) if last else 0
        return self.stored[begin:end], self._summaries[:, first:last]


def fragment_ids(fragments: Sequence[Fragment]) -> U64Array:
    """The ids of fragments, in their order."""
    if isinstance(fragments, FragmentList):
        return fragments.ids
    return np.array([fragment.id for fragment in fragments], dtype=np.uint64)


def stored_fragments(fragments: Iterable[Fragment]) -> bytes:
    """Fragments as fields of a serialised manifest."""
    messages = [fragment_to_message(fragment) for fragment in fragments]
    stored: bytes = table_pb2.Manifest(fragments=messages).SerializeToString()
    return stored


def _stored_part(fragments: Iterable[Fragment]) -> _Part:
    stored = stored_fragments(fragments)
    return stored, _summaries(stored)


def _summaries(stored: bytes) -> U64Array:
    try:
        return kernels.fragment_summaries(stored)
    except kernels.CorruptDataError as error:
        raise CorruptFileError(f"The fragments cannot be parsed: {error.args[0]}") from error


def _file_bytes(fragment: Fragment) -> int:
    """The size of all files of a fragment; files without a recorded size count as 0."""
    return sum(file.file_size or 0 for file in fragment.files)
