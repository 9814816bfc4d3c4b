"""Creates native decoders for schema fields over a file of version 0.1."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings import legacy_page
from lance_engine.encodings.leaf import leaf_shape
from lance_engine.encodings.legacy.context import PageContext
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.file.decoding import LeafSource
from lance_engine.file.fields import ShortColumn
from lance_engine.file.legacy import LegacyFile
from lance_engine.schema_tree import Field

_LISTS: Final = ("list", "list.struct", "large_list", "large_list.struct")
_REMEDY: Final = "Exclude the column from the query"


@dataclass(slots=True)
class LegacyFieldBuilder:
    """Builds the decoders of fields and collects the leaves whose bytes can be fetched ahead.

    Structs have no pages, lists have a page of offsets per batch, and the items of a batch follow those of
    the previous batch.
    """

    file: LegacyFile
    rows: int
    leaves: dict[LeafSource, list[kernels.LeafColumn]] = field(default_factory=dict)
    short: ShortColumn | None = None

    def build(self, top: Field, coded: bool = False, *, alone: bool = False) -> kernels.Field:
        """The decoder of a top-level field; `coded` asks for strings as codes into a dictionary.

        `alone` asks for the only leaf below structs, which are never null, without these.
        """
        node, name = top, top.name
        while alone and not node.is_leaf:
            (node,) = node.children
            name = f"{name}.{node.name}"
        return self._build(node, name, at_top=True, coded=coded)

    def _build(self, node: Field, name: str, *, at_top: bool, coded: bool = False) -> kernels.Field:
        kind = node.logical_type
        if kind == "struct":
            return kernels.array_struct_field(
                [self._build(child, f"{name}.{child.name}", at_top=at_top) for child in node.children]
            )
        if kind in _LISTS:
            return self._list(node, name, at_top=at_top)
        if node.children or node.is_blob:
            raise UnsupportedFeatureError(
                f"Reading a column of type '{kind}' from a file of version 0.1 is not supported",
                column=name,
                remedy=_REMEDY,
            )
        return self._leaf(node, name, at_top=at_top, coded=coded)

    def _leaf(self, node: Field, name: str, *, at_top: bool, coded: bool) -> kernels.Field:
        file = self.file
        try:
            shape = leaf_shape(node.column_type)
        except TypeError as error:
            raise UnsupportedFeatureError(str(error), column=name, remedy=_REMEDY) from error
        context = PageContext(file.size, shape, node.nullable)
        if pa.types.is_dictionary(node.arrow_type):
            index_bits = node.arrow_type.index_type.bit_width
            context = replace(context, dictionary=file.dictionary(node.id), index_bits=index_bits)
        pages = []
        for number, page in enumerate(file.pages(node.id, name)):
            with file.placed(column=name, page=number):
                pages.append(legacy_page.build_page(page, context))
        with file.placed(column=name):
            column = kernels.leaf_column(
                name=name,
                kind=shape.kind,
                width=shape.width,
                dims=shape.dims,
                path=("item",),
                pages=pages,
                source=file.source,
            )
        if at_top:
            self._check_rows(file, name, column.rows)
            self.leaves.setdefault(file, []).append(column)
        return kernels.structural_field(kernels.leaf_node(column), coded)

    def _list(self, node: Field, name: str, *, at_top: bool) -> kernels.Field:
        file = self.file
        (child,) = node.children
        large = node.logical_type.startswith("large")
        pages = []
        for number, page in enumerate(file.pages(node.id, name)):
            with file.placed(column=name, page=number):
                if page.length == 0:
                    raise CorruptFileError("A page of list offsets is empty")
                ends = legacy_page.list_ends(page, file.size, large=large)
            items = self._items(child, f"{name}.{child.name}", number)
            pages.append((page.length - 1, ends, legacy_page.NO_NULL_LISTS, items))
        if at_top:
            self._check_rows(file, name, sum(page[0] for page in pages))
        items_field = self._build(child, f"{name}.{child.name}", at_top=False)
        with file.placed(column=name):
            return kernels.array_list_field(name, pages, file.source, items_field, large)

    def _items(self, node: Field, name: str, batch: int) -> int:
        """How many items a batch has below a list."""
        while node.logical_type == "struct":
            node = node.children[0]
        length = self.file.pages(node.id, name)[batch].length
        return max(0, length - 1) if node.logical_type in _LISTS else length

    def _check_rows(self, file: LegacyFile, name: str, rows: int) -> None:
        if rows < self.rows:
            if self.short is None or rows < self.short.rows:
                self.short = ShortColumn(rows, self.rows, name, file.path)
        elif rows != self.rows:
            raise CorruptFileError(
                f"The column has {rows} rows, but its fragment has {self.rows}", path=file.path, column=name
            )
