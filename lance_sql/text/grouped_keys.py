"""The columns of a table of which a query only has to know where values are equal.

It groups by such columns, counts their distinct values, or selects distinct rows: numbers can stand for the
values, which are needed once for each row of the result. Only queries of a plain shape are understood:
``SELECT [DISTINCT] ... FROM t [WHERE ...] [GROUP BY ...] [HAVING ...] [ORDER BY ...] [LIMIT ...]``. FROM may
have inner joins with other tables, and WHERE subqueries: conditions keep their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple

from lance_sql.text.entry_calls import Call, with_calls
from lance_sql.text.statement import is_alias
from lance_sql.text.table_conditions import bracket_depths, joined_tables
from lance_sql.text.tokens import Token, arguments, closing
from lance_sql.text.used_fields import TablePlace, selects_by_name

#: Words of queries that are more than one plain SELECT, and others that use columns without naming them.
_OTHERS: Final = frozenset(
    {
        "#", "ANTI", "ASOF", "AT", "COLLATE", "COLUMNS", "CUBE", "DESCRIBE", "EXCEPT", "FETCH", "GROUPING",
        "INTERSECT", "INTO", "NATURAL", "OVER", "PIVOT", "POSITIONAL", "QUALIFY", "ROLLUP", "SAMPLE", "SEMI",
        "SETS", "SHOW", "SUMMARIZE", "TABLE", "TABLESAMPLE", "UNION", "UNNEST", "UNPIVOT", "USING", "VALUES",
        "WINDOW", "WITH",
    }
)  # fmt: skip
#: Those in which calls may be columns: conditions keep theirs.
_CALLING: Final = {"SELECT", "GROUP", "HAVING", "ORDER"}
#: A comparison, and the order of an aggregate.
_NO_CLAUSES: Final = {("DISTINCT", "FROM"), ("WITHIN", "GROUP")}
_CLAUSES: Final = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")
#: What may follow a column in ORDER BY.
_ORDERS: Final = (
    [], ["ASC"], ["DESC"],
    *([*order, "NULLS", place] for order in ([], ["ASC"], ["DESC"]) for place in ("FIRST", "LAST")),
)  # fmt: skip
_NAMES: Final = ("word", "quoted")
_AGGREGATES: Final = frozenset({"AVG", "COUNT", "MAX", "MIN", "STDDEV", "SUM"})
#: How a call can be a column: wherever it is, or where the query only compares its values; None: not at all.
CallKind = Literal["anywhere", "compared"] | None


class Item(NamedTuple):
    """An item of the SELECT list: where its characters end, and whether the text names it."""

    end: int
    is_named: bool


class Uses(NamedTuple):
    """What a query does with a column of which it only compares values.

    `places` are its mentions by characters, which may be replaced, `counted` whether one is in a COUNT
    DISTINCT. `shown` are the items of the SELECT list that are the column itself, and `changed` those that
    mention it. `orders`: rows are in the order of its values.
    """

    places: tuple[tuple[int, int], ...]
    shown: tuple[int, ...]
    changed: tuple[int, ...]
    counted: bool
    orders: bool


class GroupedKeys(NamedTuple):
    """A query over `table` that only compares values of some columns, by lower-case name.

    `keys` is the number of items in GROUP BY, or those of SELECT DISTINCT; 0 for one group of all rows.
    `calls` are calls of functions, which may be columns, too. `is_filtered`: the query has a WHERE.
    """

    table: TablePlace
    items: tuple[Item, ...]
    columns: dict[str, Uses]
    keys: int
    calls: dict[Call, Uses]
    is_filtered: bool


def grouped_keys(
    tokens: Sequence[Token],
    table: str,
    columns: Collection[str],
    wanted: Collection[str],
    calls: Callable[[Call], CallKind] = lambda _: None,
    others: Mapping[str, Collection[str]] | None = None,
) -> GroupedKeys | None:
    """What a query over a table with such `columns`, by lower-case name, does with those `wanted`.

    None if it is of another shape, or if it has to know the values of each of them. `calls` says how a call
    of a function can be a column. `others` are tables that the query may join, with their columns.
    """
    tokens = list(tokens)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    words = [token.upper for token in tokens]
    clauses = _clauses(tokens, words) if words[:1] == ["SELECT"] else None
    if clauses is None:
        return None
    inside = set(_of_subqueries(clauses.get("WHERE", [])))
    outside = [token for token in tokens if token not in inside] if inside else tokens
    words = [token.upper for token in outside]
    if words.count("SELECT") != 1 or not _OTHERS.isdisjoint(words) or not selects_by_name(outside, words):
        return None
    source = _source(clauses["FROM"], table, others or {})
    if source is None:
        return None
    place, qualifiers, ambiguous = source
    columns = {*columns, *ambiguous}
    wanted = [name for name in wanted if name not in ambiguous]
    visible = set(wanted).difference(_hidden(clauses["SELECT"])) if _aggregates(clauses) else set()
    kinds: dict[str, CallKind] = {}
    while True:
        found: dict[str, Call] = {}
        is_column = partial(_is_column, found, kinds, calls)
        read = {
            word: with_calls(clause, qualifiers, visible, is_column) if word in _CALLING else clause
            for word, clause in clauses.items()
        }
        query = _Query(read, place, qualifiers, columns)
        uses = {
            call: query.uses(name) if kinds[name] == "compared" else query.places(name)
            for name, call in found.items()
        }
        # Numbers that stand for values of functions do not ascend with these.
        needed = [call.value for call, use in uses.items() if use is None or use.orders]
        if not needed:
            return query.found(wanted, {call: use for call, use in uses.items() if use is not None})
        kinds.update(dict.fromkeys(needed, None))


def _is_column(
    found: dict[str, Call], kinds: dict[str, CallKind], kind: Callable[[Call], CallKind], call: Call
) -> bool:
    """Whether a call can be a column; it is then among those that are `found`."""
    if call.value not in kinds:
        kinds[call.value] = kind(call)
    if kinds[call.value] is not None:
        found[call.value] = call
    return call.value in found


def _aggregates(clauses: Mapping[str, list[Token]]) -> bool:
    """Whether the rows of the result are certainly groups of rows."""
    if "GROUP" in clauses:
        return True
    items = arguments(clauses["SELECT"])
    return all(
        [token.upper for token in item[1:2]] == ["("] and item[0].upper in _AGGREGATES for item in items
    )


def _hidden(selected: list[Token]) -> Iterator[str]:
    """The names of items, which may hide columns in other clauses."""
    for item in arguments(selected):
        if len(item) > 2 and item[1].text == ":" and item[2].text != ":":  # name: value
            yield item[0].value.lower()
        if len(item) > 1 and item[-2].text != "." and item[0].value.lower() != item[-1].value.lower():
            yield item[-1].value.lower()


def _clauses(tokens: list[Token], words: list[str]) -> dict[str, list[Token]] | None:
    """The tokens of each clause of a SELECT; None if there are others."""
    starts: dict[str, int] = {}
    depth = 0
    for position, token in enumerate(tokens):
        word = words[position]
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        before = words[position - 1]
        if depth or word not in _CLAUSES or (before, word) in _NO_CLAUSES:
            continue
        if word in starts or (word in ("GROUP", "ORDER") and words[position + 1 : position + 2] != ["BY"]):
            return None
        starts[word] = position
    if list(starts) != [word for word in _CLAUSES if word in starts] or "FROM" not in starts:
        return None
    ends = [*list(starts.values())[1:], len(tokens)]
    skipped = {"GROUP": 2, "ORDER": 2}
    return {
        word: tokens[start + skipped.get(word, 1) : end]
        for (word, start), end in zip(starts.items(), ends, strict=True)
    }


def _of_subqueries(tokens: list[Token]) -> Iterator[Token]:
    """The tokens of subqueries, with their brackets."""
    position = 0
    while position < len(tokens):
        end = None
        if tokens[position].text == "(" and [token.upper for token in tokens[position + 1 :][:1]] == [
            "SELECT"
        ]:
            end = closing(tokens, position)
        if end is not None:
            yield from tokens[position : end + 1]
            position = end
        position += 1


def _source(
    tokens: list[Token], table: str, others: Mapping[str, Collection[str]]
) -> tuple[TablePlace, set[str], set[str]] | None:
    """The place of the table, its lower-case names in the query, and the names of what other tables have."""
    joined = joined_tables(
        [token for token, depth in zip(tokens, bracket_depths(tokens), strict=True) if not depth]
    )
    if not joined:
        return None
    places = []
    names: set[str] = set()
    for qualifier, (token, is_named) in joined.items():
        if token.value == table:
            places.append(
                (TablePlace(token.start, token.end, token.text, is_named), {qualifier, table.lower()})
            )
        elif token.value in others:
            names.update((qualifier, *others[token.value]))
        else:
            return None
    return (*places[0], names) if len(places) == 1 else None


class _Query:
    """The clauses of a query, and what it does with the columns of its table."""

    def __init__(
        self,
        clauses: dict[str, list[Token]],
        place: TablePlace,
        qualifiers: set[str],
        columns: Collection[str],
    ) -> None:
        self._clauses = clauses
        self._place = place
        self._qualifiers = qualifiers
        self._columns = columns
        selected = clauses["SELECT"]
        self._is_distinct = bool(selected) and selected[0].upper == "DISTINCT"
        self._selected = arguments(selected[1:] if self._is_distinct else selected)
        self._grouped = arguments(clauses["GROUP"]) if "GROUP" in clauses else []
        self._ordered = arguments(clauses["ORDER"]) if "ORDER" in clauses else []

    def found(self, wanted: Collection[str], calls: dict[Call, Uses]) -> GroupedKeys | None:
        """What the query does with columns and calls."""
        every = [token for clause in self._clauses.values() for token in clause]
        alls = sum(token.upper == "ALL" for token in every)
        groups_by_all = [[token.upper for token in item] for item in self._grouped] == [["ALL"]]
        if alls != groups_by_all or not all(self._selected):
            return None
        if self._is_distinct and self._selected[0][0].upper == "ON":
            return None
        if self._uses_rows() or any(map(_may_be_a_position, self._ordered)):
            return None
        mentioned = {token.value.lower() for token in every}
        found = {column: self.uses(column) for column in wanted if column in mentioned}
        uses = {column: use for column, use in found.items() if use is not None}
        keys = len(self._selected) if self._is_distinct or groups_by_all else len(self._grouped)
        items = tuple(Item(item[-1].end, _is_named(item)) for item in self._selected)
        is_filtered = "WHERE" in self._clauses
        return GroupedKeys(self._place, items, uses, keys, calls, is_filtered) if uses or calls else None

    def _uses_rows(self) -> bool:
        """Whether the query may use whole rows, under the name of the table."""
        rows = self._qualifiers.difference(self._columns)
        for word, clause in self._clauses.items():
            for position, token in enumerate(clause):
                behind = clause[position + 1].text if position + 1 < len(clause) else ""
                named = token.kind in _NAMES and token.value.lower() in rows
                if named and word != "FROM" and behind != ".":
                    return True
        return False

    def places(self, call: str) -> Uses:
        """Where the query has a call."""
        places = [
            (token.start, token.end)
            for clause in self._clauses.values()
            for token in clause
            if token.value == call
        ]
        return Uses(tuple(places), (), self._changed(places), False, False)

    def uses(self, column: str) -> Uses | None:
        """What the query does with a column; None if more than comparing values."""
        if column in self._qualifiers:
            return None
        places: list[tuple[int, int]] = []
        shown: list[int] = []
        names = {column}
        understood: set[int] = set()

        def mention(tokens: list[Token]) -> None:
            places.append((tokens[0].start, tokens[-1].end))
            understood.add(tokens[-1].start)

        for number, item in enumerate(self._selected):
            found, behind = self._column(item, column)
            if not found or not (not behind or _is_alias(behind)):
                continue
            shown.append(number)
            mention(found)
            if behind:
                names.add(behind[-1].value.lower())
                understood.add(behind[-1].start)
        counts = list(self._counts(column))
        for found in counts:
            mention(found)
        if not (self._grouped or counts or (self._is_distinct and shown)):
            return None
        # A name in GROUP BY is that of a column, if the table has it, and in ORDER BY that of an item.
        if any(name in self._columns or name in self._qualifiers for name in names - {column}):
            return None
        for item in self._grouped:
            found, behind = self._column(item, column)
            if found and not behind:
                mention(found)
            elif len(item) == 1 and item[0].kind in _NAMES and item[0].value.lower() in names:
                understood.add(item[0].start)
        orders = False
        for item in map(_ordering_key, self._ordered):
            found, behind = self._column(item, column)
            if found and not behind:
                mention(found)
            elif len(item) == 1 and item[0].kind in _NAMES and item[0].value.lower() in names:
                understood.add(item[0].start)
            elif not (_is_position(item) and int(item[0].text) - 1 in shown):
                continue
            orders = True
        if not places or any(token.start not in understood for token in self._called(column, names)):
            return None
        return Uses(tuple(sorted(places)), tuple(shown), self._changed(places), bool(counts), orders)

    def _changed(self, places: list[tuple[int, int]]) -> tuple[int, ...]:
        """The items of the SELECT list with one of these places."""
        return tuple(
            number
            for number, item in enumerate(self._selected)
            if any(item[0].start <= start <= item[-1].start for start, _ in places)
        )

    def _column(self, item: list[Token], column: str) -> tuple[list[Token], list[Token]]:
        """The tokens of a column at the beginning of an item, and those behind it; nothing without it."""
        begin = 0
        if len(item) > 2 and item[1].text == "." and item[0].kind in _NAMES:
            begin = 2 * (item[0].value.lower() in self._qualifiers)
        if item and item[begin].kind in _NAMES and item[begin].value.lower() == column:
            return item[: begin + 1], item[begin + 1 :]
        return [], item

    def _counts(self, column: str) -> Iterator[list[Token]]:
        """The mentions of a column in ``count(DISTINCT column)``."""
        for word in ("SELECT", "HAVING", "ORDER"):
            clause = self._clauses.get(word, [])
            words = [token.upper for token in clause]
            for position in range(len(words)):
                if words[position : position + 3] != ["COUNT", "(", "DISTINCT"]:
                    continue
                if position and words[position - 1] == ".":
                    continue
                found, behind = self._column(clause[position + 3 :], column)
                if found and behind and behind[0].text == ")":
                    yield found

    def _called(self, column: str, names: Collection[str]) -> Iterator[Token]:
        """The tokens that may refer to a column, or to an item with one of these names."""
        for word, clause in self._clauses.items():
            if word == "FROM":
                continue
            # In a condition, a name is that of a column if the table has it, and conditions keep theirs.
            called = {*names} - {column} if word == "WHERE" else names
            kinds = _NAMES if word == "WHERE" else (*_NAMES, "string")
            yield from (token for token in clause if token.kind in kinds and token.value.lower() in called)


def _is_alias(behind: list[Token]) -> bool:
    """Whether tokens behind a column only give it a name."""
    if len(behind) == 2:
        return behind[0].upper == "AS" and behind[1].kind in _NAMES
    return len(behind) == 1 and is_alias(behind[0])


def _is_named(item: list[Token]) -> bool:
    """Whether an item seems to have a name; engines say what its name is then."""
    if len(item) < 2 or item[-1].kind not in (*_NAMES, "string"):
        return False
    before = item[-2]
    return before.upper == "AS" or before.text == ")" or before.kind in _NAMES


def _ordering_key(item: list[Token]) -> list[Token]:
    """An item of ORDER BY without its direction."""
    for length in (3, 2, 1):
        if len(item) > length and [token.upper for token in item[-length:]] in _ORDERS:
            return item[:-length]
    return item


def _is_position(item: list[Token]) -> bool:
    """Whether an item of ORDER BY is the position of an item of the SELECT list."""
    return len(item) == 1 and item[0].kind == "number" and item[0].text.isdecimal()


def _may_be_a_position(item: list[Token]) -> bool:
    """Whether an item of ORDER BY may be a position that is written in another way."""
    key = _ordering_key(item)
    return not _is_position(key) and not any(token.kind in _NAMES for token in key)
