"""Table functions over datasets, and versions in ``AT (...)``, as parts of a SQL text."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.text.metadata_tables import DESCRIPTIONS, FUNCTIONS, METADATA_TABLES
from lance_sql.text.reference import NEWEST, Reference, VersionChoice, moment, reference_name
from lance_sql.text.tokens import Token, arguments, as_string, closing, quote

#: Keywords that can follow a table and are not an alias.
_AFTER_TABLE = re.compile(
    "ANTI|ASOF|CROSS|EXCEPT|FETCH|FULL|GROUP|HAVING|INNER|INTERSECT|JOIN|LATERAL|LEFT|LIMIT|NATURAL|OFFSET|ON|"
    "ORDER|POSITIONAL|QUALIFY|RIGHT|SELECT|SEMI|TABLESAMPLE|UNION|USING|WHERE|WINDOW"
)


class Edit(NamedTuple):
    """A replacement in the text of a statement.

    With a `name`, it is only made if that name refers to a dataset; a replacement for a `dialect` is only
    made for engines that require numbered parameters and a SELECT in each query.
    """

    start: int
    end: int
    replacement: str
    name: str | None = None
    dialect: bool = False


#: A reference, its number of tokens, and the replacement it needs.
Found = tuple[Reference, int, Edit | None]

#: Function -> the metadata table that it shows, by the names of DuckDB's Lance extension.
_SHOWN: Final = {
    "lance_indexes": "indexes",
    "lance_indices": "indexes",
    "lance_config": "config",
    "lance_table_metadata": "table_metadata",
    "lance_schema_metadata": "schema_metadata",
    "lance_column_metadata": "column_metadata",
}
_FUNCTIONS: Final = frozenset(("lance_scan", "lance_metadata", *_SHOWN))

TRAVEL_REMEDY = "Write AT (VERSION => 3), AT (TAG => 'prod') or AT (TIMESTAMP => '2026-01-31 18:00:00')"

#: Arguments of ``lance_scan`` and ``AT``, and the version that they select.
_CHOICES: Final = {
    "VERSION": "version", "TAG": "tag", "TIMESTAMP": "as_of", "AS_OF": "as_of", "BRANCH": "branch"
}  # fmt: skip


def table_call(text: str, tokens: list[Token], position: int) -> Found | None:
    """``lance_scan('path', version => n)``, ``lance_metadata('path', 'versions')``, ``lance_indexes(t)``."""
    function = tokens[position].text.lower() if tokens[position].kind == "word" else ""
    if function in FUNCTIONS or function in DESCRIPTIONS:
        return _catalog_call(tokens, position, function)
    if function not in _FUNCTIONS:
        return None
    end = closing(tokens, position + 1) if position + 1 < len(tokens) else None
    if end is None or tokens[position + 1].text != "(":
        return None
    table, *others = arguments(tokens[position + 2 : end])
    named = named_table(table) if function in _SHOWN else None
    if named is None:
        if len(table) != 1 or table[0].kind != "string":
            raise UnsupportedFeatureError(
                f"{function} needs a constant path", remedy=f"Write {function}('x.lance')"
            )
        named = table[0].value, True
    location, quoted = named
    part = _SHOWN.get(function)
    if function == "lance_metadata":
        part = others.pop(0)[0].value.lower() if others and others[0] else None
        if part not in METADATA_TABLES:
            raise UnsupportedFeatureError(
                f"Unknown metadata table {part!r}", remedy=f"Choose from {', '.join(METADATA_TABLES)}"
            )
    column = None
    if function == "lance_column_metadata":
        column = others.pop(0) if others else []
        if len(column) != 1 or column[0].kind != "string":
            raise UnsupportedFeatureError(
                f"{function} needs the name of a column", remedy=f"Write {function}('x.lance', 'column')"
            )
    choice = _merged([_choice(text, argument) for argument in others])
    name = reference_name(location, choice, part)
    reference = Reference(name, location, choice, part, certain=True, quoted=quoted)
    rows = quote(name)
    if column is not None:
        named_so = f'lower("column") = lower({as_string(column[0].value)})'
        rows = f'(SELECT "key", "value" FROM {rows} WHERE {named_so})'
    return reference, end - position + 1, Edit(tokens[position].start, tokens[end].end, rows)


def _catalog_call(tokens: list[Token], position: int, function: str) -> Found | None:
    """``duckdb_tables()``, which lists all tables, or ``pragma_table_info('t')``, which describes one."""
    end = closing(tokens, position + 1) if tokens[position + 1 : position + 2] else None
    if end is None or tokens[position + 1].text != "(":
        return None
    part = DESCRIPTIONS.get(function)
    if part is None:
        reference = Reference(f"{function}()", function, certain=True)
        if end > position + 2:
            return None
    else:
        argument = tokens[position + 2 : end]
        named = named_table(argument) if len(argument) == 1 and argument[0].kind == "string" else None
        if named is None:
            return None
        location, quoted = named
        reference = Reference(reference_name(location, NEWEST, part), location, part=part, quoted=quoted)
    following = tokens[end + 1 : end + 2]
    alias = "" if following and is_alias(following[0]) else f" AS {function}"
    edit = Edit(tokens[position].start, tokens[end].end, quote(reference.name) + alias, reference.name)
    return reference, end - position + 1, edit


def named_table(tokens: list[Token]) -> tuple[str, bool] | None:
    """The table or path that an argument names, and whether it may be a path; None if it is something else.

    DuckDB's Lance extension takes both as strings: ``'ns.main.t'`` and ``'x.lance'``.
    """
    if not tokens or tokens[0].kind not in ("word", "quoted", "string"):
        return None
    if len(tokens) > 1:
        names = dotted_name(tokens, 0)
        return (".".join(names), False) if 2 * len(names) - 1 == len(tokens) else None
    name = tokens[0].value
    is_path = "/" in name or "@" in name or name.endswith(".lance") or "." not in name
    return name, tokens[0].kind != "word" and is_path


def dotted_name(tokens: list[Token], position: int) -> list[str]:
    """The parts of ``ns.t`` or ``ns.s.t`` at a table position; a single one without dots."""
    names = [tokens[position].value]
    if tokens[position].kind == "string":
        return names
    end = position
    while (
        end + 2 < len(tokens) and tokens[end + 1].text == "." and tokens[end + 2].kind in ("word", "quoted")
    ):
        end += 2
        names.append(tokens[end].value)
    is_call = end + 1 < len(tokens) and tokens[end + 1].text == "("
    return names[:1] if is_call else names


def time_travel(text: str, tokens: list[Token], position: int) -> tuple[VersionChoice, int] | None:
    """``AT (VERSION => n)`` at `position`: the version and the number of tokens."""
    if [token.upper for token in tokens[position : position + 2]] != ["AT", "("]:
        return None
    end = closing(tokens, position + 1)
    if end is None or position + 3 >= len(tokens) or tokens[position + 3].text not in ("=>", ":="):
        return None
    choices = [_choice(text, argument) for argument in arguments(tokens[position + 2 : end])]
    return _merged(choices), end - position + 1


def _choice(text: str, argument: list[Token]) -> VersionChoice:
    """``version => 3`` and similar; a positional number is a version."""
    if len(argument) == 1 and argument[0].kind == "number" and argument[0].text.isdecimal():
        return VersionChoice(version=int(argument[0].text))
    keyword = _CHOICES.get(argument[0].upper) if len(argument) > 2 else None
    if keyword is not None and argument[1].text in ("=>", ":="):
        value = argument[2]
        if keyword == "as_of":
            return VersionChoice(as_of=moment(text[value.start : argument[-1].end]))
        if keyword == "version" and len(argument) == 3 and value.text.isdecimal():
            return VersionChoice(version=int(value.text))
        if keyword in ("tag", "branch") and len(argument) == 3 and value.kind in ("string", "quoted", "word"):
            return VersionChoice(tag=value.value) if keyword == "tag" else VersionChoice(branch=value.value)
    said = text[argument[0].start : argument[-1].end] if argument else ""
    raise UnsupportedFeatureError(f"{said!r} is not a version", remedy=TRAVEL_REMEDY)


def _merged(choices: list[VersionChoice]) -> VersionChoice:
    """A branch can be combined with one of the others."""
    arguments: dict[str, Any] = {}
    for choice in choices:
        arguments |= choice.arguments()
    if sum(name != "branch" for name in arguments) > 1 or len(arguments) < len(choices):
        raise UnsupportedFeatureError("More than one version was given", remedy=TRAVEL_REMEDY)
    return VersionChoice(**arguments)


def is_alias(token: Token) -> bool:
    """Whether a token after a table is an alias."""
    return token.kind == "quoted" or (token.kind == "word" and not _AFTER_TABLE.fullmatch(token.upper))
