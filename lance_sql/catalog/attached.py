"""The namespaces of a session by name, and the resolution of dotted names in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lance_sql.catalog.engine_names import NO_NAMES, FindNames
from lance_sql.catalog.namespaces import MAIN, DirectoryNamespace, Namespace, Place, Viewer, named
from lance_sql.errors import SqlError

#: The name of the directory of a session.
SESSION = "lance"


class Listed(NamedTuple):
    """A table of a namespace."""

    catalog: str
    schema: str
    name: str


class Attached:
    """Namespaces by name; one schema is the default for names without dots.

    `engine_names` returns what such names mean to the engine.
    """

    def __init__(
        self, namespaces: dict[str, Namespace] | None = None, engine_names: FindNames = lambda: NO_NAMES
    ) -> None:
        self._namespaces = dict(namespaces or {})
        self._first = (SESSION, MAIN) if SESSION in self._namespaces else None
        self._current = self._first
        self.engine_names = engine_names

    @property
    def current(self) -> tuple[str, str] | None:
        """The default namespace and schema; None if only the engine resolves names without dots."""
        return None if self._current is None or self.engine_names().is_elsewhere else self._current

    def copy(self, engine_names: FindNames, viewer: Viewer) -> Attached:
        """A copy for a cursor of the engine, which starts in the engine's first schema."""
        namespaces = {
            name: one.within(viewer) if isinstance(one, DirectoryNamespace) else one
            for name, one in self._namespaces.items()
        }
        copied = Attached(namespaces, engine_names)
        copied._current = self._current or copied._first
        return copied

    def names(self) -> list[str]:
        """The names of the namespaces."""
        return list(self._namespaces)

    def sources(self) -> list[str]:
        """The locations of the namespaces that are directories."""
        return [one.source for one in self._namespaces.values() if isinstance(one, DirectoryNamespace)]

    def get(self, name: str) -> Namespace | None:
        """The namespace of a name, None if none exists."""
        known = named(name, list(self._namespaces))
        return None if known is None else self._namespaces[known]

    def attach(self, name: str, namespace: Namespace, *, replace: bool = False) -> None:
        """Add a namespace under a name; SqlError if the name is taken."""
        known = named(name, list(self._namespaces))
        if known is not None:
            if not replace:
                raise SqlError(
                    f"{name!r} is already attached",
                    remedy="Choose another name with AS, or DETACH this one first",
                )
            self.detach(known)
        self._namespaces[name] = namespace

    def detach(self, name: str) -> bool:
        """Remove a namespace; False if it does not exist."""
        known = named(name, list(self._namespaces))
        if known is None:
            return False
        del self._namespaces[known]
        if self._first is not None and self._first[0] == known:
            self._first = None
        if self._current is not None and self._current[0] == known:
            self._current = self._first
        return True

    def use(self, parts: Sequence[str]) -> bool:
        """Set the default namespace or schema; False if `parts` does not name one."""
        place = self._schema(parts) or self._schema_of_current(parts)
        if place is None:
            return False
        name, schema = place
        known = named(schema, self._namespaces[name].schemas())
        if known is None:
            raise SqlError(f"{name} has no schema {schema!r}", remedy=f"Write CREATE SCHEMA {name}.{schema}")
        self._current = (name, known)
        return True

    def leave(self) -> None:
        """Only the engine resolves names without dots from now on."""
        self._current = None

    def reset(self) -> None:
        """Reset the default namespace and schema."""
        self._current = self._first

    def hidden(self, name: str) -> str | None:
        """The kind of the engine's own table or view that a table of the default schema would hide."""
        if self.current is None:
            return None
        # A namespace that was chosen with USE comes before all but the temporary tables of the engine.
        return self.engine_names().kind(name, only_temporary=self.current != self._first)

    def _schema(self, parts: Sequence[str]) -> tuple[str, str] | None:
        name = named(parts[0], list(self._namespaces))
        if name is None or len(parts) > 2:
            return None
        return name, parts[1] if len(parts) == 2 else MAIN

    def _schema_of_current(self, parts: Sequence[str]) -> tuple[str, str] | None:
        if self.current is None or len(parts) != 1:
            return None
        known = named(parts[0], self._namespaces[self.current[0]].schemas())
        return None if known is None else (self.current[0], known)

    def schema(self, parts: Sequence[str]) -> tuple[str, Namespace, str] | None:
        """The namespace, its name and the schema for ``ns.s``, or for ``s`` in the default namespace.

        Without USE, new schemas are the engine's, which can contain views as well.
        """
        if len(parts) == 1 and self.current is not None and self.current[0] != SESSION:
            return self.current[0], self._namespaces[self.current[0]], parts[0]
        place = self._schema(parts) if len(parts) == 2 else None
        return None if place is None else (place[0], self._namespaces[place[0]], place[1])

    def split(self, name: str, *, dots: bool = True) -> tuple[Namespace, str, str] | None:
        """The namespace, schema and table for ``ns.t``, ``ns.s.t``, ``s.t`` or ``t``; None for other names.

        Without `dots`, dots are part of the table name.
        """
        parts = name.split(".") if dots else [name]
        space = named(parts[0], list(self._namespaces)) if len(parts) > 1 else None
        if space is not None:
            namespace = self._namespaces[space]
            if len(parts) == 2:
                return namespace, MAIN, parts[1]
            end = _end_of_schema(namespace, parts) if len(parts) > 3 else 2
            return namespace, ".".join(parts[1:end]), ".".join(parts[end:])
        if self.current is None:
            return None
        namespace = self._namespaces[self.current[0]]
        if len(parts) == 1:
            return namespace, self.current[1], name
        if len(parts) == 2 and named(parts[0], namespace.schemas()) is not None:
            return namespace, parts[0], parts[1]
        return None

    def find(self, name: str) -> Place | None:
        """The location of the dataset with this name; None if no namespace has it."""
        parts = self.split(name)
        if parts is None:
            return None
        namespace, schema, table = parts
        place = namespace.find(schema, table)
        if place is None and "." in name and schema != MAIN:  # a name with a dot in it
            place = namespace.find(MAIN, f"{schema}.{table}")
        return place

    def current_directory(self) -> tuple[DirectoryNamespace, str] | None:
        """The default directory and schema; None if the default namespace is not a directory."""
        namespace = None if self.current is None else self._namespaces[self.current[0]]
        if self.current is None or not isinstance(namespace, DirectoryNamespace):
            return None
        return namespace, self.current[1]

    def current_tables(self) -> list[str]:
        """The tables of the default schema."""
        return [] if self.current is None else self._namespaces[self.current[0]].tables(self.current[1])

    def tables(self) -> Iterator[Listed]:
        """All tables of all namespaces."""
        for catalog, namespace in self._namespaces.items():
            for schema in namespace.schemas():
                for name in namespace.tables(schema):
                    yield Listed(catalog, schema, name)

    def schemas(self) -> Iterator[tuple[str, str]]:
        """All schemas, qualified with the name of their namespace."""
        for catalog, namespace in self._namespaces.items():
            for schema in namespace.schemas():
                yield catalog, schema


def _end_of_schema(namespace: Namespace, parts: Sequence[str]) -> int:
    """Where the table begins in ``ns.s.t``: the schema and the table may have dots in their names."""
    schemas = namespace.schemas()
    ends = range(len(parts) - 1, 2, -1)
    return next((end for end in ends if named(".".join(parts[1:end]), schemas) is not None), 2)
