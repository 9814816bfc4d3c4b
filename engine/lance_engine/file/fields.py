"""Creates native decoders for schema fields, over the columns of one or several data files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

from lance_engine import kernels
from lance_engine.encodings.leaf import LeafShape, leaf_shape
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.file.decoding import LeafSource
from lance_engine.file.file_group import FileGroup
from lance_engine.file.reader import FileReader
from lance_engine.schema_tree import Field

# Where a field is stored: the file or files, and the number of its (first) column there.
FindColumn = Callable[[Field], tuple[FileReader | FileGroup, int]]

_LISTS: Final = ("list", "list.struct", "large_list", "large_list.struct")
_STRINGS: Final = ("string", "large_string", "binary", "large_binary")
PackedChildren = list[tuple[str, int, tuple[int, ...]]]
# Kind, position, size, file number and URI of a blob of the second kind (format 2.2, blob v2).
_BLOB_DESCRIPTOR: Final[PackedChildren] = [
    *(("fixed", width, ()) for width in (1, 8, 8, 4)),
    ("variable32", 0, ()),
]
# Cached shapes of leaves: they are the same in every fragment.
_CACHED_SHAPES: Final = 1024
_REMEDY: Final = "Exclude the column from the query"


class ShortColumn(NamedTuple):
    """A column with fewer rows than its fragment: the existing rows can be read."""

    rows: int
    expected: int
    name: str
    path: str

    def error(self) -> CorruptFileError:
        """The error for missing rows."""
        return CorruptFileError(
            f"The column has {self.rows} rows, but its fragment has {self.expected}",
            path=self.path,
            column=self.name,
            remedy="Look up single rows, or restore the file from a copy",
        )


@dataclass(slots=True)
class FieldBuilder:
    """Builds the decoders of fields and collects, per file, the leaves whose bytes can be prefetched."""

    find: FindColumn
    rows: int
    #: whether columns may have more rows (which are ignored), or fewer, as `short` specifies
    may_differ: bool = False
    leaves: dict[LeafSource, list[kernels.LeafColumn]] = field(default_factory=dict)
    short: ShortColumn | None = None

    def build(self, top: Field, coded: bool = False, *, alone: bool = False) -> kernels.Field:
        """The decoder of a top-level field; every column below it must be stored.

        `coded` requests strings as 32-bit codes into a dictionary per batch, whose values may repeat.
        `alone` requests the only leaf below structs without these, null where one of them is.
        """
        reader, _ = self.find(next(top.leaves()))
        node, name = top, top.name
        above: tuple[str, ...] = ()
        while alone and not node.is_leaf:
            (node,) = node.children
            name, above = f"{name}.{node.name}", ("item", *above)
        if isinstance(reader, FileReader) and reader.version == "2.0":
            with reader.placed():  # here structs are never null
                return self._build_2_0(node, name, at_top=True, coded=coded)
        return kernels.structural_field(self._node(node, above, name), coded)

    # ---- 2.1 and 2.2: only leaves are stored, with the levels of all their parents --------------------

    def _node(self, node: Field, above: tuple[str, ...], name: str) -> kernels.Node:
        kind = node.logical_type
        if kind == "struct" and not node.children:
            return kernels.struct_node([])
        if node.is_leaf:
            return self._leaf_node(node, ("item", *above), name)
        if kind == "struct":
            below = ("item", *above)
            return kernels.struct_node(
                [self._node(child, below, f"{name}.{child.name}") for child in node.children]
            )
        (child,) = node.children
        if all(leaf.logical_type == "struct" and not leaf.children for leaf in child.leaves()):
            # No column stores the length of the lists.
            raise UnsupportedFeatureError(
                "Reading lists of structs without fields is not supported", column=name, remedy=_REMEDY
            )
        if kind in _LISTS or kind == "map":
            large = kind.startswith("large")
            below = ("large_list" if large else "list", *above)
            return kernels.list_node(self._node(child, below, f"{name}.{child.name}"), large)
        if kind.startswith("fixed_size_list:struct:"):
            dimension = int(kind.rpartition(":")[2])
            if dimension < 1:
                raise UnsupportedFeatureError("Fixed-size list of size 0", column=name, remedy=_REMEDY)
            below = (f"fixed_size_list:{dimension}", *above)
            return kernels.fixed_size_list_node(self._node(child, below, f"{name}.{child.name}"), dimension)
        raise UnsupportedFeatureError(
            f"Reading a column of type '{kind}' is not supported", column=name, remedy=_REMEDY
        )

    def _leaf_node(self, node: Field, layers: Sequence[str], name: str) -> kernels.Node:
        reader, index = self.find(node)
        if node.is_packed and not node.is_blob:
            shape, packed = _packed_shape_2_1(node, name)
        else:
            shape = _shape(node, name)
            packed = _BLOB_DESCRIPTOR if node.is_blob_v2 else []
        per_row = [int(layer.rpartition(":")[2]) for layer in layers if layer.startswith("fixed_size_list")]
        if isinstance(reader, FileGroup):
            column = reader.leaf_column(index, name, shape, layers, prod(per_row))
        else:
            with reader.placed(column=name):
                pages = reader.open_pages(index)
            column = self._column(reader, name, shape, layers, pages)
            self._check_rows(reader, name, column.rows, per_row)
        if not per_row:
            self.leaves.setdefault(reader, []).append(column)
        return kernels.leaf_node(column, packed)

    @staticmethod
    def _column(
        reader: FileReader,
        name: str,
        shape: LeafShape,
        layers: Sequence[str],
        pages: Sequence[kernels.Page],
    ) -> kernels.LeafColumn:
        with reader.placed(column=name):
            return kernels.leaf_column(
                name=name,
                kind=shape.kind,
                width=shape.width,
                dims=shape.dims,
                path=layers,
                pages=pages,
                source=reader.source,
            )

    def _check_rows(self, reader: FileReader, name: str, rows: int, per_row: Sequence[int]) -> None:
        expected = self.rows
        for dimension in per_row:
            expected *= dimension
        if self.may_differ:
            if rows < expected and (self.short is None or rows < self.short.rows):
                dimensions = expected // self.rows
                self.short = ShortColumn(rows // dimensions, self.rows, name, reader.path)
        elif rows != expected:
            raise CorruptFileError(
                f"The column has {rows} rows, but its table has {expected}", path=reader.path, column=name
            )

    # ---- 2.0: structs and lists have their own columns ----------------------------------------------

    def _build_2_0(self, node: Field, name: str, *, at_top: bool, coded: bool = False) -> kernels.Field:
        kind = node.logical_type
        if kind == "struct" and not self._is_packed_2_0(node, name):
            children = [
                self._build_2_0(child, f"{name}.{child.name}", at_top=at_top) for child in node.children
            ]
            return kernels.array_struct_field(children)
        if kind in _LISTS:
            (child,) = node.children
            items = self._build_2_0(child, f"{name}.{child.name}", at_top=False)
            return self._list_2_0(node, name, items, at_top=at_top)
        if kind == "map" or kind.startswith("fixed_size_list:struct"):
            raise CorruptFileError(f"File version 2.0 does not support columns of type '{kind}'", column=name)
        reader, index = self._find_2_0(node, name)
        if kind in _STRINGS and _is_list_2_0(reader, index, name):
            # Early writers stored strings as lists of bytes, whose items are the next column.
            items_column = self._column_2_0(reader, index + 1, name, LeafShape("fixed", 1))
            items = kernels.structural_field(kernels.leaf_node(items_column), False)
            return kernels.array_string_field(self._list_2_0(node, name, items, at_top=at_top))
        shape, packed = _packed_shape(node, name) if kind == "struct" else (_shape(node, name), [])
        column = self._column_2_0(reader, index, name, shape, node)
        if at_top:
            self._check_rows(reader, name, column.rows, ())
            self.leaves.setdefault(reader, []).append(column)
        return kernels.structural_field(kernels.leaf_node(column, packed), coded)

    def _column_2_0(
        self, reader: FileReader, index: int, name: str, shape: LeafShape, node: Field | None = None
    ) -> kernels.LeafColumn:
        """Column `index` of the file; `node` is its field unless it belongs to a part of one."""
        is_dictionary = node is not None and node.logical_type.startswith("dict:")
        is_blob = node is not None and node.is_blob
        with reader.placed(column=name):
            pages = reader.open_array_pages(index, shape, is_dictionary=is_dictionary, is_blob=is_blob)
        return self._column(reader, name, shape, ("item",), pages)

    def _is_packed_2_0(self, node: Field, name: str) -> bool:
        """Whether a struct is stored row by row, according to its only page, or the schema without pages."""
        try:
            reader, index = self.find(node)
        except KeyError:
            return False
        assert isinstance(reader, FileReader)
        with reader.placed(column=name):
            kind = reader.array_kind(index)
        return kind == "packed_struct" if kind else node.is_packed

    def _find_2_0(self, node: Field, name: str) -> tuple[FileReader, int]:
        try:
            reader, index = self.find(node)
        except KeyError:
            raise CorruptFileError(
                "A field in a file of version 2.0 has no column of its own", column=name
            ) from None
        assert isinstance(reader, FileReader)  # a group has no files of this version
        return reader, index

    def _list_2_0(self, node: Field, name: str, items: kernels.Field, *, at_top: bool) -> kernels.Field:
        reader, index = self._find_2_0(node, name)
        if any(self._find_2_0(leaf, name)[0] is not reader for leaf in node.leaves()):
            # Some fields of its items were replaced, and the position of the lengths of the others is
            # unknown.
            raise UnsupportedFeatureError(
                "Parts of lists of version 2.0 are in several files", column=name, remedy=_REMEDY
            )
        with reader.placed(column=name):
            pages = reader.open_list_pages(index)
        if at_top:
            self._check_rows(reader, name, sum(page[0] for page in pages), ())
        large = node.logical_type.startswith("large")
        with reader.placed(column=name):
            return kernels.array_list_field(name, pages, reader.source, items, large)


def _is_list_2_0(reader: FileReader, index: int, name: str) -> bool:
    with reader.placed(column=name):
        return reader.array_kind(index) == "list"


@lru_cache(_CACHED_SHAPES)
def _shape(node: Field, name: str) -> LeafShape:
    if node.is_blob:
        return LeafShape("variable64", 0)
    try:
        return leaf_shape(node.column_type)
    except TypeError as error:
        raise UnsupportedFeatureError(str(error), column=name, remedy=_REMEDY) from error


def _packed_shape(node: Field, name: str) -> tuple[LeafShape, PackedChildren]:
    """The rows of a packed struct of fixed-width fields, and the shapes of its children."""
    children = _packed_children(node, name)
    if any(kind != "fixed" for kind, _, _ in children):
        raise UnsupportedFeatureError(
            "Reading a packed struct with children of these types is not supported",
            column=name,
            remedy=_REMEDY,
        )
    width = sum(width * prod(dims) for _, width, dims in children)
    return LeafShape("fixed", width), children


def _packed_shape_2_1(node: Field, name: str) -> tuple[LeafShape, PackedChildren]:
    """As `_packed_shape`; rows with strings or lists in them are themselves of variable width."""
    children = _packed_children(node, name)
    if all(kind == "fixed" and not dims for kind, _, dims in children):
        return _packed_shape(node, name)
    return LeafShape("variable64", 0), children


def _packed_children(node: Field, name: str) -> PackedChildren:
    children = []
    for child in node.children:
        shape = _shape(child, f"{name}.{child.name}")
        if shape.kind == "null" or (shape.kind == "bits" and not shape.dims):
            raise UnsupportedFeatureError(
                f"Reading a packed struct with a field of type '{child.logical_type}' is not supported",
                column=f"{name}.{child.name}",
                remedy=_REMEDY,
            )
        children.append((shape.kind, shape.width, shape.dims))
    return children
