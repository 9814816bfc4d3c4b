"""The dataset that a statement changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.namespaces import is_dataset_path
from lance_sql.syntax.source import rename
from lance_sql.text.reference import Reference, split_suffix
from lance_sql.text.tokens import quote

if TYPE_CHECKING:
    from sqlglot import exp

    from lance_sql.statements.session import Session

_SUFFIX = ".lance"


def find(catalog: Catalog, table: exp.Table, *, must_exist: bool = True) -> SqlDataset | None:
    """The newest version of the dataset that `table` names; None if it names a table of the engine.

    DatasetNotFoundError for the path of a dataset that does not exist, or None without `must_exist`.
    """
    name = dotted(table)
    return find_named(catalog, name, quoted=name == table.name and _is_quoted(table), must_exist=must_exist)


def find_named(
    catalog: Catalog, name: str, *, quoted: bool = True, must_exist: bool = True
) -> SqlDataset | None:
    """As `find`, for a name that is not part of a parsed statement."""
    suffix = split_suffix(name) if quoted else None
    if suffix is not None and suffix[0].endswith(_SUFFIX):
        raise UnsupportedFeatureError(
            f"{name} is an old version and is read-only",
            remedy=f"Change '{suffix[0]}', after CALL restore('{suffix[0]}', ...) to restore that version",
        )
    return catalog.open_to_change(Reference(name, name, certain=must_exist, quoted=quoted))


def location(catalog: Catalog, table: exp.Table) -> str | None:
    """The location for a new dataset with this name; None if it is a table of the engine."""
    name = dotted(table)
    if name == table.name and _is_quoted(table) and is_dataset_path(name):
        return name
    return catalog.new_place(name, dots=name != table.name)


def dotted(table: exp.Table) -> str:
    """The qualified name of a table: ``t``, ``ns.t`` or ``ns.s.t``."""
    return ".".join(part.name for part in table.parts)


def kind_in_engine(session: Session, table: exp.Table) -> str | None:
    """What the engine itself calls so in the default schema: "table", "view", or a temporary one; or None."""
    namespace, *schema = [part.name for part in table.parts][:-1] or [""]
    current = session.catalog.attached.current
    if current is not None and [namespace, *schema] not in ([""], [current[1]], [current[0]], [*current]):
        return None
    return session.catalog.attached.hidden(table.name)


def name_of(table: exp.Table) -> str:
    """The name of the table in expressions of the statement."""
    return str(table.alias or table.name)


def call_by_name(statement: exp.Expression, table: exp.Table) -> None:
    """Let expressions of the statement refer to its table ``ns.t`` by its unqualified name."""
    from sqlglot import exp

    parts = [part.name.lower() for part in table.parts]
    if len(parts) < 2 or table.alias:
        return
    for column in statement.find_all(exp.Column):
        above = [str(column.text(part)).lower() for part in ("catalog", "db", "table")]
        called = [part for part in above if part]
        if len(called) > 1 and called == parts[-len(called) :]:
            rename(statement, column.parts[:-1], quote(table.name))
            column.set("catalog", None)
            column.set("db", None)


def _is_quoted(table: exp.Table) -> bool:
    return bool(table.this.args.get("quoted"))
