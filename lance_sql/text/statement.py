"""Finds references to Lance tables in a SQL text, based on its tokens.

The engines receive the user's text unchanged except for syntax that only this layer supports: ``AT (VERSION
=> n)`` and metadata tables such as ``'x.lance'.versions`` after a table, ``lance_scan('path')``,
``lance_metadata('path', 'versions')``, and for DataFusion ``?`` parameters, which become ``$1``, ``$2`` ...,
and ``FROM t`` alone, which becomes ``SELECT * FROM t``. Tokens are sufficient for that: a full parser would
have to support every dialect, and a misread token causes at most one unused registration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property, wraps
from typing import Any, NamedTuple, TypeVar

from lance_engine.base import nearest_name
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.scan import SYSTEM_FIELDS

from lance_sql.text.calls import Edit, Found, dotted_name, is_alias, table_call, time_travel
from lance_sql.text.from_first import without_select
from lance_sql.text.kinds import NAMED_TABLE, Does, kind_of
from lance_sql.text.metadata_tables import METADATA_TABLES, VIEWS
from lance_sql.text.reference import NEWEST, Reference, reference_name
from lance_sql.text.tokens import Token, quote, table_positions, tokenize

T = TypeVar("T")


class Statement:
    """A SQL statement; its tokens and references are computed on first use, and kept."""

    def __init__(self, original: str, tokens: list[Token] | None = None) -> None:
        self.original = original
        #: what `once_per_statement` found in it
        self.facts: dict[object, Any] = {}
        if tokens is not None:
            self.tokens = tokens

    @classmethod
    def of(cls, text: str | Statement) -> Statement:
        """A text as a statement."""
        return text if isinstance(text, Statement) else cls(text)

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens of the text."""
        return tokenize(self.original)

    @cached_property
    def does(self) -> Does:
        """What it may do."""
        return kind_of(self.tokens)

    @cached_property
    def is_plain_query(self) -> bool:
        """Whether it is a query without functions and settings of ours, and without queries before it."""
        return (
            bool(self.does & Does.QUERY)
            and self.tokens[0].upper != "WITH"
            and "lance_" not in self.original.lower()
        )

    @cached_property
    def _names(self) -> _Names:
        return _read(self.original, self.tokens)

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references that may be Lance tables.

        Raises `UnsupportedFeatureError` for an unknown time travel clause, `InvalidFilterError` for an
        invalid time.
        """
        return self._names.references

    @property
    def system_columns(self) -> tuple[str, ...]:
        """The system columns that occur in the text."""
        return self._names.system_columns

    def text(self, registered: Collection[str] = (), numbered: bool = True) -> str:
        """The text for an engine with the tables `registered`; `numbered`: with ``$1`` for ``?``."""
        pieces, last = [], 0
        for edit in self._names.edits:
            if (edit.name is None or edit.name in registered) and (numbered or not edit.dialect):
                pieces += [self.original[last : edit.start], edit.replacement]
                last = edit.end
        return "".join([*pieces, self.original[last:]])


def once_per_statement(find: Callable[[Statement], T]) -> Callable[[Statement], T]:
    """`find`, which must depend on nothing but the statement. Callers share its result, and never change it.

    Errors are not kept. Statements are kept for texts that run again: see `lance_sql.text.script`.
    """

    @wraps(find)
    def cached(statement: Statement) -> T:
        if find not in statement.facts:
            statement.facts[find] = find(statement)
        fact: T = statement.facts[find]
        return fact

    return cached


class _Names(NamedTuple):
    """The references of a statement, and the replacements for an engine in which they are registered."""

    edits: tuple[Edit, ...]
    references: tuple[Reference, ...]
    system_columns: tuple[str, ...]


def _read(text: str, tokens: list[Token]) -> _Names:
    tables = table_positions(tokens)
    references: dict[str, Reference] = {}
    edits: list[Edit] = []
    #: the parts of names such as ns.t, for tables without an alias
    dotted: dict[str, list[str]] = {}
    parameters = 0
    position = 0
    while position < len(tokens):
        token = tokens[position]
        consumed = 1
        named = None
        if token.kind == "parameter":
            parameters += 1
            edits.append(Edit(token.start, token.end, f"${parameters}", dialect=True))
        elif token.kind in ("string", "quoted", "word"):
            named = table_call(text, tokens, position) or _table(text, tokens, position, position in tables)
        if named is not None:
            reference, consumed, edit = named
            if edit is not None and edit.replacement.startswith(f"{quote(reference.name)} AS "):
                dotted[reference.name] = dotted_name(tokens, position)
            known = references.get(reference.name)
            if known is None or not known.certain:
                references[reference.name] = reference
            if edit is not None:
                edits.append(edit)
        position += consumed
    selects = [Edit(place, place, "SELECT * ", dialect=True) for place in without_select(tokens)]
    if selects:
        edits = sorted([*edits, *selects], key=lambda edit: (edit.start, edit.end))
    words = {token.value.lower() for token in tokens if token.kind in ("word", "quoted")}
    edits += _qualifiers(tokens, dotted, tables)
    edits.sort(key=lambda edit: edit.start)
    return _Names(
        edits=tuple(edits),
        references=tuple(references.values()),
        system_columns=tuple(column for column in SYSTEM_FIELDS if column in words),
    )


def _qualifiers(
    tokens: list[Token], dotted: Mapping[str, list[str]], tables: Collection[int]
) -> Iterator[Edit]:
    """Replacements that turn ``ns.t.column`` into ``t.column`` if ``ns.t`` is a table of the statement."""
    for name, parts in dotted.items():
        for count in range(len(parts), 1, -1):
            wanted = [part.lower() for part in parts[-count:]]
            for position in range(len(tokens) - 2 * count):
                if position in tables or (position and tokens[position - 1].text == "."):
                    continue
                written = tokens[position : position + 2 * count]
                if [token.value.lower() for token in written[::2]] != wanted:
                    continue
                if all(token.text == "." for token in written[1::2]) and all(
                    token.kind in ("word", "quoted") for token in written[::2]
                ):
                    yield Edit(written[0].start, written[-2].end, quote(parts[-1]), name)


def _table(text: str, tokens: list[Token], position: int, certain: bool) -> Found:
    """The reference that starts at `position`, its number of tokens, and the replacement it needs."""
    token = tokens[position]
    names = dotted_name(tokens, position) if certain else [token.value]
    location = ".".join(names)
    view = VIEWS.get(location.lower()) if certain and token.kind != "string" else None
    if view is not None and not _is_common_table(tokens, location):
        length = 2 * len(names) - 1
        alias = "" if any(map(is_alias, tokens[position + length :][:1])) else f" AS {quote(names[-1])}"
        edit = Edit(token.start, tokens[position + length - 1].end, quote(view) + alias, view)
        return Reference(view, location, certain=True), length, edit
    length = 2 * len(names) - 1
    part = None
    if len(names) > 2 and names[-1].lower() in METADATA_TABLES:
        part = names[-1].lower()
        location = ".".join(names[:-1])
    elif len(names) == 1 or names[-1].lower() in METADATA_TABLES:
        names, location, length = names[:1], token.value, 1
        part = _metadata_name(tokens, position, certain)
        if part is not None:
            length += 2
    choice = NEWEST
    travel = time_travel(text, tokens, position + length)
    if travel is not None:
        choice, clause = travel
        length += clause
    name = reference_name(location, choice, part)
    quoted = token.kind != "word" and len(names) == 1
    reference = Reference(name, location, choice, part, certain or length > 1, quoted)
    if length == 1:
        return reference, 1, None
    following = tokens[position + length] if position + length < len(tokens) else None
    named = following is not None and is_alias(following)
    takes_none = position > 0 and (
        tokens[position - 1].upper in NAMED_TABLE or tokens[position - 1].text == ":"
    )
    alias = "" if named or takes_none else f" AS {quote(part or names[-1])}"
    # sales.versions may also be the table `versions` in a schema `sales` of the engine.
    only_if = None if choice or reference.quoted else name
    edit = Edit(token.start, tokens[position + length - 1].end, quote(name) + alias, only_if)
    return reference, length, edit


def _is_common_table(tokens: list[Token], name: str) -> bool:
    """Whether a name is one of WITH: ``name AS (query)``."""
    folded = name.lower()
    return any(
        token.value.lower() == folded
        and [near.upper for near in tokens[place + 1 : place + 3]] == ["AS", "("]
        for place, token in enumerate(tokens)
    )


def _metadata_name(tokens: list[Token], position: int, certain: bool) -> str | None:
    """The metadata table in ``'x.lance'.versions`` or ``sales.versions``."""
    if not certain or [token.text for token in tokens[position + 1 : position + 2]] != ["."]:
        return None
    name = tokens[position + 2].value.lower() if position + 2 < len(tokens) else ""
    if name in METADATA_TABLES:
        return name
    token = tokens[position]
    if token.kind != "word" and token.value.endswith(".lance"):  # unambiguous syntax
        near = nearest_name(name, METADATA_TABLES)
        hint = f"Did you mean {near!r}? " if near else ""
        raise UnsupportedFeatureError(
            f"Unknown metadata table {name!r}", remedy=f"{hint}Choose from {', '.join(METADATA_TABLES)}"
        )
    return None
