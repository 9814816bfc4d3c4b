"""The readers of the fragments of a version, each opened when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot


class FragmentReaders:
    """The readers by the ids of their fragments. Thread-safe."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._readers: dict[int, FragmentReader] = {}

    def __call__(self, fragment_id: int) -> FragmentReader:
        opened = self._readers.get(fragment_id)
        if opened is None:
            from lance_engine.scan.fragment import FragmentReader  # metadata is read without it

            reader = FragmentReader(self._snapshot, self._snapshot.fragment(fragment_id))
            opened = self._readers.setdefault(fragment_id, reader)
        return opened

    def dictionary_columns(self, max_entries: int | None, columns: Sequence[str] | None) -> list[str]:
        """Those of some string columns, or of all at the top level, that the first fragment stores as
        dictionaries, of at most that many entries.
        """
        if not self._snapshot.fragments:
            return []
        reader = self(self._snapshot.fragments[0].id)
        names = [field.name for field in self._snapshot.schema.fields] if columns is None else columns
        return [name for name in names if reader.is_dictionary_coded(name, max_entries)]
