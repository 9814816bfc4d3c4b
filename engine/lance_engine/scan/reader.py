"""Reads columns of consecutively numbered rows: those of one fragment, or of several in sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.cache import METADATA
from lance_engine.errors import LanceError, Placed, UnsupportedFeatureError
from lance_engine.file.fields import FieldBuilder
from lance_engine.scan.layout import FragmentLayout, Names, ProjectedColumns, StoredColumn
from lance_engine.scan.paths import field_path, is_read_alone, narrowed
from lance_engine.scan.projection import BuiltField, Decoders, Projection
from lance_engine.scan.system import SYSTEM_FIELDS
from lance_engine.scan.touched import FragmentRows
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.file.legacy_fields import LegacyFieldBuilder
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot

# Memory of a page description, without its chunk index and dictionary.
_PAGE_BYTES = 1024

U32Array = npt.NDArray[np.uint32]


class RowsReader(ABC):
    """Files are opened when a projection first needs them; thread-safe.

    It caches decoders, which do not refer to it: only its users keep a reader alive.
    """

    def __init__(self, snapshot: Snapshot, layout: FragmentLayout) -> None:
        self._snapshot = snapshot
        self._layout = layout
        self._built: dict[tuple[Field, bool, bool], BuiltField] = {}
        self._decoders: dict[tuple[Names, frozenset[str]], Decoders] = {}
        self._tests: WeakIdentityDict[object, Decoders | None] = WeakIdentityDict()

    def evict(self) -> None:
        """Drop all cached file data; existing projections stay usable."""
        self._built, self._decoders, self._tests = {}, {}, WeakIdentityDict()

    @property
    @abstractmethod
    def rows(self) -> int:
        """Physical rows, deleted ones included."""

    @property
    @abstractmethod
    def fragment_rows(self) -> FragmentRows:
        """The fragments of the rows."""

    @property
    @abstractmethod
    def has_chunks(self) -> bool:
        """Whether values are stored in small chunks (since format 2.1), from which picking a few is fast."""

    @abstractmethod
    def deleted(self) -> U32Array | None:
        """Sorted numbers of the deleted rows, or None."""

    @abstractmethod
    def system_column(self, name: str, begin: int, end: int) -> pa.Array:
        """A system column of rows [begin, end)."""

    @abstractmethod
    def system_values(self, name: str, rows: U32Array) -> pa.Array:
        """A system column of certain rows."""

    @abstractmethod
    def blobs(self, leaf: Field, descriptors: pa.StructArray) -> pa.Array:
        """The bytes of the blobs of a field."""

    @abstractmethod
    def placed(self) -> Placed:
        """A context manager that adds the place to errors, and converts kernel errors."""

    @abstractmethod
    def _builder(self, field: Field) -> FieldBuilder | LegacyFieldBuilder:
        """Creates the decoder of a field."""

    @abstractmethod
    def _fetch_metadata(self, columns: Mapping[int, Sequence[int]]) -> None:
        """Load the metadata of some columns, all columns of a file together."""

    def row_too_large(self, error: kernels.BatchTooLargeError) -> LanceError:
        """The error for a single row that is too large for a batch."""
        try:
            with self.placed():
                raise UnsupportedFeatureError(
                    f"A row is too large for a batch: {error}",
                    remedy="Read fewer columns, or verify the dataset",
                )
        except LanceError as placed:
            return placed.at(path=self._snapshot.uri)

    def any_deleted(self, begin: int, end: int) -> bool:
        """Whether one of the rows [begin, end) is deleted."""
        deleted = self.deleted()
        if deleted is None:
            return False
        first, last = np.searchsorted(deleted, [begin, end])
        return bool(first < last)

    def projection(self, names: Names, coded: frozenset[str] = frozenset()) -> Projection:
        """The decoders of these columns, including system columns; those in `coded` return dictionaries."""
        key = (names, coded.intersection(names) if coded else coded)
        decoders = self._decoders.get(key)
        if decoders is None:
            with self.placed():
                projected = self.projected(*key)
                self._fetch_metadata(projected.columns)
                fields = [self._decoder(column) for column in projected.stored]
                decoders = self._decoders.setdefault(key, Decoders(projected, fields))
        else:
            METADATA.hit(self)
        return Projection(self, decoders)

    def field(self, name: str) -> Field:
        return self._snapshot.schema.field(name)

    def built(self, field: Field, coded: bool = False, *, alone: bool = False) -> BuiltField:
        """The decoder of a top-level field, as codes if requested; shared by projections.

        Children without stored columns are missing in the field. `alone`: of its only leaf, without structs.
        """
        key = field, coded, alone
        built = self._built.get(key)
        if built is None:
            builder = self._builder(field)
            decoder = builder.build(field, coded, alone=alone)
            built = self._built.setdefault(key, BuiltField(decoder, builder.leaves, builder.short))
            METADATA.grew(self, sum(map(_metadata_bytes, chain.from_iterable(builder.leaves.values()))))
        return built

    def _decoder(self, column: StoredColumn) -> BuiltField:
        """The decoder of a column, or of dictionary codes."""
        built = self.built(column.field, column.coded, alone=column.alone)
        if column.entries is None:
            return built
        decoder = built.decoder.mapped(column.entries.entries.native)
        if decoder is None:
            raise UnsupportedFeatureError("The column has no strings to map", column=column.entries.source)
        return built._replace(decoder=decoder)

    def tests(self, key: object, tests: Mapping[str, tuple[str, kernels.ValueTest]]) -> Projection | None:
        """Readers, by name, for the result of a test on each value of a column; None if one is impossible.

        Cached for `key`, as long as it exists.
        """
        if key not in self._tests:
            with self.placed():
                self._tests[key] = self._tested(tests)
        decoders = self._tests[key]
        return None if decoders is None else Projection(self, decoders)

    def _tested(self, tests: Mapping[str, tuple[str, kernels.ValueTest]]) -> Decoders | None:
        fields = []
        for column, test in tests.values():
            path = field_path(self._snapshot.schema, column)
            field = narrowed(path)
            # Of JSON, the binary form would be tested instead of its text.
            if self._layout.stored(field) != field or path[-1].is_json:
                return None
            built = self.built(field)
            decoder = built.decoder.tested(test)
            if decoder is None:
                return None
            fields.append(BuiltField(decoder, built.leaves, built.short))
        return Decoders(pa.schema([pa.field(name, pa.bool_()) for name in tests]), fields)

    def is_dictionary_coded(self, name: str, max_entries: int | None = None) -> bool:
        """Whether all pages of a string column have a dictionary, of at most `max_entries` if given."""
        if name in SYSTEM_FIELDS:
            return False
        path = field_path(self._snapshot.schema, name)
        alone = is_read_alone(path)
        if not (alone or len(path) == 1) or path[-1].logical_type not in ("string", "large_string"):
            return False
        if not self.is_stored(path[-1]):
            return False
        with self.placed():
            built = self.built(narrowed(path), alone=alone)
        leaves = [leaf for leaves in built.leaves.values() for leaf in leaves]
        return bool(leaves) and all(
            leaf.gives_codes and (max_entries is None or leaf.dictionary_entries <= max_entries)
            for leaf in leaves
        )

    def is_stored(self, field: Field) -> bool:
        """Whether the column exists in the files; if not, all its values are null."""
        return self._layout.stored(field) is not None

    def projected(self, names: Names, coded: frozenset[str]) -> ProjectedColumns:
        """The properties of columns here."""
        return self._layout.projected(names, coded)


def _metadata_bytes(leaf: kernels.LeafColumn) -> int:
    """The approximate memory for the metadata of a column: its pages and their cached data."""
    kept = sum(length for _, length in leaf.metadata_ranges(np.array([[0, leaf.rows]])))
    return kept + _PAGE_BYTES * len(leaf.page_starts)
