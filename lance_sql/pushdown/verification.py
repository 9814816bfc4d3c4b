"""What is certain about the rows of a query, and can be compared with those of another run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from lance_sql.errors import SqlError
from lance_sql.pushdown_settings import DISABLED, VERIFY
from lance_sql.syntax.tree import tree_of
from lance_sql.types.python_values import rows_of

if TYPE_CHECKING:
    from lance_sql.text.statement import Statement

#: Digits of floating-point numbers that are compared: their sums depend on the order of rows.
_DIGITS: Final = 9
#: Words of statements whose rows may be others in each run.
_CHANGING: Final = frozenset(
    {
        "ANY_VALUE", "ARBITRARY", "ARG_MAX", "ARG_MIN", "ARRAY_AGG", "CLOCK_TIMESTAMP", "CURRENT_DATE",
        "CURRENT_TIME", "CURRENT_TIMESTAMP", "FETCH", "FIRST", "FIRST_VALUE", "GEN_RANDOM_UUID",
        "GROUP_CONCAT", "LAST", "LAST_VALUE", "LIST", "LISTAGG", "MAX_BY", "MIN_BY", "NEXTVAL", "NOW",
        "NTH_VALUE", "ON", "OVER", "RANDOM", "SAMPLE", "STRING_AGG", "TABLESAMPLE", "UUID",
    }
)  # fmt: skip


class Verification(NamedTuple):
    """How the rows of a query are compared.

    `rows`: all of them must be the same, in any order; otherwise only their number. `keys` are the positions
    of columns whose values must come in the same order. `everything` is a query whose rows include those of
    this one.
    """

    rows: bool = True
    keys: tuple[int, ...] = ()
    everything: str | None = None


def verification_of(statement: Statement) -> Verification | None:
    """How the rows of a statement are compared; None if nothing about them is certain."""
    from sqlglot import exp

    tree = tree_of(statement)
    words = [token.upper for token in statement.tokens]
    own = (word for place, word in enumerate(words) if not _is_join(words, place))
    changes = not _CHANGING.isdisjoint(own)
    if tree is None or not isinstance(tree.root, exp.Query):
        return None
    limits = list(tree.root.find_all(exp.Limit, exp.Offset))
    if any(node.parent is not tree.root for node in limits):
        return None  # which rows a subquery has is not certain
    if not limits:
        return Verification(not changes, () if changes else _keys(tree.root))
    if tree.root.args.get("order"):
        return Verification(False, () if changes else _keys(tree.root))
    return Verification(False, (), None if changes else _without_limit(statement, words))


def _is_join(words: list[str], place: int) -> bool:
    """Whether ON is that of a join, not of DISTINCT ON; and FIRST and LAST those of NULLS FIRST."""
    before = words[place - 1] if place else ""
    return (words[place] == "ON" and before != "DISTINCT") or before == "NULLS"


def _keys(root: Any) -> tuple[int, ...]:
    """The positions of the columns by which a query is ordered; none if it may be ordered by others."""
    from sqlglot import exp

    order = root.args.get("order")
    if order is None or not isinstance(root, exp.Select):
        return ()
    names = [item.alias_or_name.lower() for item in root.expressions]
    if any(item.find(exp.Star) is not None and not item.find(exp.AggFunc) for item in root.expressions):
        return ()
    keys: list[int] = []
    for item in order.expressions:
        key = item.this if isinstance(item, exp.Ordered) else item
        if isinstance(key, exp.Literal) and key.name.isdecimal():
            keys.append(int(key.name) - 1)
        elif isinstance(key, exp.Column) and not key.table and names.count(key.name.lower()) == 1:
            keys.append(names.index(key.name.lower()))
        else:
            break
    return tuple(keys)


def _without_limit(statement: Statement, words: list[str]) -> str | None:
    """The text without its LIMIT and OFFSET at the end."""
    places = [place for place, word in enumerate(words) if word in ("LIMIT", "OFFSET")]
    behind = [token for token in statement.tokens[places[0] :] if token.text != ";"]
    if any(token.kind != "number" for token in behind[1::2]) or len(behind) != 2 * len(places):
        return None
    return statement.original[: statement.tokens[places[0]].start]


def check_same(
    actual: pa.Table, expected: pa.Table, verification: Verification, kinds: Sequence[Any] = ()
) -> None:
    """SqlError if the rows of a query with pushdowns are not those without them."""
    if actual.schema.names != expected.schema.names or actual.schema.types != expected.schema.types:
        raise different(f"the columns are {actual.schema.types} instead of {expected.schema.types}")
    if actual.num_rows != expected.num_rows:
        raise different(f"{actual.num_rows:,} rows instead of {expected.num_rows:,}")
    if not (verification.rows or verification.keys):
        return
    ours, theirs = (_comparable(rows_of(rows, kinds)) for rows in (actual, expected))
    if verification.rows:
        _check_included(ours, theirs)
    for position in verification.keys:
        if [row[position] for row in ours] != [row[position] for row in theirs]:
            raise different(f"{actual.schema.names[position]} is in another order")


def check_included(part: pa.Table, everything: pa.Table, kinds: Sequence[Any] = ()) -> None:
    """SqlError if any row of a query is not among those of another."""
    _check_included(*(_comparable(rows_of(rows, kinds)) for rows in (part, everything)))


def _check_included(rows: Sequence[Any], among: Sequence[Any]) -> None:
    more = Counter(rows) - Counter(among)
    if more:
        raise different(f"{more.total():,} of {len(rows):,} rows differ, such as {next(iter(more))}")


def different(what: str) -> SqlError:
    """The error about a result that pushdowns change."""
    return SqlError(
        f"Pushdowns change the result: {what}",
        remedy=f"This is a bug: please report the statement. SET {DISABLED} = 'all' gives the result without "
        f"them; RESET {VERIFY} ends the comparison",
    )


def _comparable(value: Any) -> Any:
    """A value that equals those that are as good as the same."""
    if isinstance(value, float):
        return "nan" if value != value else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, dict):
        return tuple((_comparable(key), _comparable(item)) for key, item in value.items())
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
