"""One data file of version 2.x: opening it, and its columns as native decoders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lance_engine import kernels
from lance_engine.encodings import registry
from lance_engine.encodings.leaf import leaf_shape
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.format.container import (
    FOOTER_SIZE,
    ColumnMetadata,
    Footer,
    parse_column_metadata,
    parse_footer,
    parse_offset_table,
)
from lance_engine.io.coalesce import coalesce

if TYPE_CHECKING:
    from lance_engine.io.store import Store
    from lance_engine.types import Field

# The end of a remote file is read in one request of this size: most files' footer and column metadata fit.
TAIL_SIZE = 64 << 10

SUPPORTED_VERSIONS = ("2.1", "2.2")


class FileReader:
    """A data file, opened.

    Local files are mapped into memory. Of others, only the byte ranges asked for are fetched: the metadata of
    columns once, when they are first used, and the data of a batch with each batch.
    """

    def __init__(self, store: Store, path: str, *, size: int | None = None) -> None:
        """Open `path`; `size` in bytes saves a request where the caller knows it."""
        self.path = path
        self._store = store
        local = store.local_path(path)
        self._segments: kernels.SegmentSource | None = None
        with self._placed():
            actual = store.size(path) if local is not None or size is None else size
            if size is not None and size != actual:
                raise CorruptFileError(
                    f"The file has {actual} bytes, the manifest says {size}",
                    remedy="Restore the file from a copy, or go back to a version that does not use it",
                )
            self.size = actual
            self._source: kernels.Source
            if local is not None:
                self._source = kernels.MappedSource.open(local)
            else:
                self._source = self._segments = kernels.SegmentSource(self.size)
            self.footer = self._read_footer()
        self._columns: dict[int, ColumnMetadata] = {}
        self._table: tuple[tuple[int, int], ...] | None = None

    @property
    def version(self) -> str:
        """File version, such as ``2.1``."""
        return self.footer.version

    @property
    def num_columns(self) -> int:
        return self.footer.num_columns

    def column_metadata(self, index: int) -> ColumnMetadata:
        """Pages and encodings of one column; parsed on first use."""
        found = self._columns.get(index)
        if found is not None:
            return found
        if not 0 <= index < self.footer.num_columns:
            raise CorruptFileError(
                f"The manifest asks for column number {index}, the file has {self.footer.num_columns}",
                path=self.path,
            )
        with self._placed():
            if self._table is None:
                table = self.read(*self.footer.table_range)
                self._table = parse_offset_table(table, self.footer.num_columns, self.size)
            metadata = parse_column_metadata(self.read(*self._table[index]), self.size)
        return self._columns.setdefault(index, metadata)

    def leaf(self, field: Field, index: int, layers: Sequence[str], name: str) -> kernels.LeafColumn:
        """The decoder of one leaf: `layers` is ``item``, ``list`` or ``large_list`` per step, the leaf first.

        `name` is the path of the column, for errors.
        """
        if self.version not in SUPPORTED_VERSIONS:
            raise UnsupportedFeatureError(
                f"Data files of version {self.version} cannot be read",
                path=self.path,
                remedy="Rewrite the dataset with version 2.1",
            )
        pages: list[kernels.Page] = []
        metadata = self.column_metadata(index)
        with self._placed(column=name):
            if field.is_blob or field.is_packed:
                kind = "blob" if field.is_blob else "packed struct"
                raise UnsupportedFeatureError(
                    f"A {kind} column cannot be read", remedy="Leave the column out of the projection"
                )
            if metadata.encoding.name != "lance.encodings.ColumnEncoding":
                raise UnsupportedFeatureError(f"The column encoding '{metadata.encoding.name}' is not known")
            shape = leaf_shape(field.arrow_type)
        for number, page in enumerate(metadata.pages):
            with self._placed(column=name, page=number):
                pages.append(registry.build_page(page))
        with self._placed(column=name):
            return kernels.leaf_column(
                name=name,
                kind=shape.kind,
                width=shape.width,
                dims=shape.dims,
                path=layers,
                pages=pages,
                source=self._source,
            )

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file; fetched and kept where the file is not local."""
        if self._segments is not None and not self._segments.holds(offset, length):
            self._fetch(self._segments, [(offset, length)])
        return self._source.read(offset, length)

    @property
    def is_local(self) -> bool:
        """Whether the file is mapped, so that nothing needs to be fetched."""
        return self._segments is None

    def overlay(
        self, leaves: Sequence[kernels.LeafColumn], ranges: Sequence[tuple[int, int]]
    ) -> tuple[kernels.Source, kernels.Source] | None:
        """Fetch what decoding `ranges` of rows of `leaves` needs; None for a local file."""
        if self._segments is None:
            return None
        bounds = [(leaf, begin, end) for leaf in leaves for begin, end in ranges]
        self._fetch(self._segments, [span for leaf, *rows in bounds for span in leaf.metadata_ranges(*rows)])
        batch = kernels.SegmentSource(self._segments)
        self._fetch(batch, [span for leaf, *rows in bounds for span in leaf.data_ranges(*rows)])
        return self._segments, batch

    def _fetch(self, target: kernels.SegmentSource, ranges: Sequence[tuple[int, int]]) -> None:
        missing = coalesce(span for span in ranges if not target.holds(*span))
        if not missing:
            return
        for (offset, _), data in zip(missing, self._store.read_ranges(self.path, missing), strict=True):
            target.add(offset, data)

    def _read_footer(self) -> Footer:
        length = min(self.size, FOOTER_SIZE if self._segments is None else TAIL_SIZE)
        return parse_footer(self.read(self.size - length, length), self.size)

    @contextmanager
    def _placed(self, **place: object) -> Iterator[None]:
        """Turn errors of the kernels into ours and add where they happened."""
        try:
            yield
        except LanceError as error:
            raise error.at(path=self.path, **place) from error.__cause__
        except kernels.CorruptDataError as error:
            what, column, page = error.args
            raise CorruptFileError(what, path=self.path).at(column=column, page=page).at(**place) from error
        except FileNotFoundError as error:
            raise CorruptFileError(
                "A data file of the dataset is missing",
                path=self.path,
                remedy="Restore the file from a copy, or go back to a version that does not use it",
            ) from error


def build_node(
    field: Field,
    find_leaf: Callable[[Field, Sequence[str], str], kernels.LeafColumn],
    above: tuple[str, ...] = (),
    prefix: str = "",
) -> kernels.Node:
    """The decoder tree of a field; `find_leaf(field, layers, name)` supplies its leaves."""
    name = prefix + field.name
    if field.is_leaf and field.logical_type != "struct":
        return kernels.leaf_node(find_leaf(field, ("item", *above), name))
    if field.logical_type == "struct" and not field.is_leaf:
        below = ("item", *above)
        children = [build_node(child, find_leaf, below, name + ".") for child in field.children]
        return kernels.struct_node(children)
    if field.logical_type == "struct" and not field.children:
        return kernels.struct_node([])
    if field.logical_type in ("list", "list.struct", "large_list", "large_list.struct", "map"):
        large = field.logical_type.startswith("large")
        layer = "large_list" if large else "list"
        return kernels.list_node(build_node(field.children[0], find_leaf, (layer, *above), name + "."), large)
    kind = "packed struct" if field.is_packed else field.logical_type
    raise UnsupportedFeatureError(
        f"A column of type '{kind}' cannot be read",
        column=name,
        remedy="Leave the column out of the projection",
    )
