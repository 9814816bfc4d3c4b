"""Clauses that the parser accepts but datasets do not support: refused by name, never ignored.

The parser supports the grammars of many databases, so a statement may contain more than DuckDB allows. The
parts listed here determine what a statement does; any other part is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lance_engine.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from sqlglot import exp

#: Kind of expression -> the parts that are supported, or refused elsewhere with a specific remedy.
_SUPPORTED: Final = {
    "Alter": "this kind actions exists options",
    "AlterColumn": "this dtype using default drop allow_null",
    "ColumnDef": "this kind constraints exists",
    "Comment": "this kind expression",
    "Copy": "this kind files params credentials",
    "Create": "with_ this kind expression exists properties replace unique",
    "Delete": "with_ this using where returning",
    "Drop": "kind tables exists cascade restrict cluster",
    "Index": "this table params",
    "IndexParameters": "using columns with_storage",
    "Insert": "with_ this expression conflict returning overwrite alternative by_name default",
    "Merge": "with_ this using on using_cond whens returning",
    "Ordered": "this nulls_first",
    "RenameColumn": "this to",
    "Returning": "expressions",
    "Table": "this alias db catalog",
    "TruncateTable": "expressions",
    "Update": "with_ this expressions from_ where returning",
}


def refuse_unsupported_clauses(statement: exp.Expression) -> None:
    """Raise an error if the statement has clauses that would be ignored."""
    from sqlglot import exp

    target = statement.this
    parts: list[exp.Expression | None] = [statement, statement.args.get("returning")]
    if isinstance(statement, exp.Create) and isinstance(target, exp.Index):
        parts += [target, target.args.get("table"), target.args.get("params"), *target.find_all(exp.Ordered)]
    elif isinstance(target, exp.Schema):
        parts += [target.this, *target.expressions]
    elif not isinstance(statement, exp.Copy | exp.Comment):
        parts += [target, *(statement.args.get("tables") or ()), *(statement.args.get("actions") or ())]
    for part in parts:
        _refuse(statement, part)
    several = {exp.Copy: "files", exp.TruncateTable: "expressions"}.get(type(statement))
    if several and len(statement.args[several]) > 1:
        raise _error(statement, ", ".join(one.sql(dialect="duckdb") for one in statement.args[several]))


def _refuse(statement: exp.Expression, part: exp.Expression | None) -> None:
    supported = _SUPPORTED.get(type(part).__name__)
    if part is None or supported is None:
        return
    for name, value in part.args.items():
        if value and name not in supported.split():
            raise _error(statement, _text(name, value))


def _error(statement: exp.Expression, what: str) -> UnsupportedFeatureError:
    kind = statement.args.get("kind") if type(statement).__name__ in ("Create", "Drop", "Alter") else None
    name = " ".join(filter(None, (statement.key.upper().removesuffix("TABLE"), kind)))
    return UnsupportedFeatureError(
        f"{name} of a dataset does not support {what}", remedy="Remove that part of the statement"
    )


def _text(name: str, value: object) -> str:
    """The SQL text of the clause, such as ``LIMIT 1``."""
    from sqlglot import exp

    first = value[0] if isinstance(value, list) else value
    if isinstance(first, exp.HistoricalData):
        return str(first.sql(dialect="duckdb"))
    if isinstance(first, exp.Expression):
        written = str(first.sql(dialect="duckdb")).strip(" ,")
        keyword = name.strip("_").upper()
        return (
            written
            if isinstance(first, exp.Query | exp.Join) or keyword in written.upper()
            else (f"{keyword} {written}")
        )
    return first.upper() if isinstance(first, str) else name.strip("_").upper()
