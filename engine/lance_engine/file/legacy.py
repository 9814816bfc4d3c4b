"""A data file of version 0.1: opening it, and the pages of its fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from lance_engine.errors import CorruptFileError
from lance_engine.file.contents import FileContents
from lance_engine.format import legacy

if TYPE_CHECKING:
    from lance_engine.io.store import Store


class LegacyFile(FileContents):
    """A data file of version 0.1, opened.

    Its rows are divided into batches, and every field has one page per batch.
    """

    def __init__(self, store: Store, path: str, field_ids: Sequence[int]) -> None:
        """Open `path`, which contains `field_ids` according to the manifest, in this order.

        The size in the manifest is ignored: releases from 0.27 to 7.0 recorded wrong sizes.
        """
        super().__init__(store, path)
        with self.placed():
            position = legacy.parse_footer(self.read_tail(legacy.FOOTER_SIZE), self.size)
            self.metadata = legacy.parse_metadata(self._message(position))
            if not field_ids or min(field_ids) < 0:
                # Fields that were removed from the manifest still have their pages.
                field_ids = list(self._schema)
            table_size = legacy.PageTable.size(field_ids, self.metadata.batches, self.size)
            table = self.read(self.metadata.page_table_position, table_size)
            self._table = legacy.PageTable.parse(table, field_ids, self.metadata.batches)

    def pages(self, field_id: int, column: str) -> list[legacy.Page]:
        """The pages of a field, one for each batch; `column` is its path, for errors."""
        with self.placed(column=column):
            pages = self._table.pages(field_id)
            if any(page.position > self.size for page in pages):
                raise CorruptFileError("The page table points outside the file")
            return pages

    def dictionary(self, field_id: int) -> legacy.StoredDictionary | None:
        """The position of the values of a dictionary column; None if the file does not contain it."""
        return self._schema.get(field_id)

    @cached_property
    def _schema(self) -> Mapping[int, legacy.StoredDictionary | None]:
        """The ids of the fields of the file, with the dictionaries of those that have one."""
        with self.placed():
            return legacy.parse_schema(self._message(self.metadata.manifest_position))

    def _message(self, position: int) -> bytes:
        length = legacy.message_length(self.read(position, legacy.LENGTH_SIZE))
        if length > self.size:
            raise CorruptFileError("A message extends past the end of the file")
        return self.read(position + legacy.LENGTH_SIZE, length)
