"""What names without dots mean to an engine, whose own tables and views a dataset must not hide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

_TEMPORARY: Final = "temporary"


class EngineNames(NamedTuple):
    """The own names of an engine at one time, without those that were registered for datasets."""

    #: whether USE or SET schema chose another default schema than that of the start
    is_elsewhere: bool = False
    #: name -> "table", "view", "temporary table" ...; the name in lower case if the engine ignores case
    kinds: Mapping[str, str] = {}

    def kind(self, name: str, *, only_temporary: bool = False) -> str | None:
        """What an unqualified name is in the engine; None if it has no such table or view."""
        known = self.kinds.get(name) or self.kinds.get(name.lower())
        return None if known is None or (only_temporary and not known.startswith(_TEMPORARY)) else known


#: A function that finds out; it is called for each statement.
FindNames = Callable[[], EngineNames]

NO_NAMES: Final = EngineNames()
