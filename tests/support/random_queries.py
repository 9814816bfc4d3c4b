"""Random SELECT statements over random tables, in SQL that DuckDB and DataFusion share.

The rows of each statement are determined: LIMIT follows an ORDER BY of every column, and sums are of numbers
whose order does not matter.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from random_tables import NESTED, Column, Make, RandomTable

#: Groups of types whose values compare with each other.
_NUMERIC: Final = ("number", "decimal")
_JOINED: Final = ("number", "text", "date")
#: Pairs of rows that a join may have to look at; a tenth of them may be equal.
_MOST_PAIRS: Final = 100_000


def _pattern(chosen: random.Random) -> str:
    return chosen.choice(["a%", "%b", "%a%", "a_c", "_", "%", "", "A%", "a\\%c", "%ä%"])


def quoted(name: str) -> str:
    """A name as it is written in SQL."""
    return '"' + name.replace('"', '""') + '"'


class Scope(NamedTuple):
    """A table of a FROM clause, under its alias."""

    alias: str
    columns: tuple[Column, ...]

    def name(self, column: Column) -> str:
        return f"{self.alias}.{quoted(column.name)}"


class Queries:
    """Statements over tables; the same seed makes the same ones."""

    def __init__(self, tables: list[RandomTable], seed: int, *, dialect: str = "duckdb") -> None:
        self.tables = tables
        self.chosen = random.Random(seed)
        self.is_duckdb = dialect == "duckdb"
        self._aliases = 0
        #: what makes the values of the parameters of a statement; None where it has literals
        self._parameters: list[Make] | None = None

    def with_parameters(self) -> tuple[str, list[Make]]:
        """A statement with parameters ``$1``, ``$2``, ..., and what makes their values."""
        self._parameters = made = []
        # Simple ones as often: more of them is pushed down.
        text = self._plain() if self.chosen.random() < 0.5 else self.statement()
        self._parameters = None
        # Some that were made are part of nothing that was chosen.
        used = list(dict.fromkeys(int(number) for number in re.findall(r"\$(\d+)", text)))
        places = {str(number): str(place) for place, number in enumerate(used, 1)}
        text = re.sub(r"\$(\d+)", lambda found: f"${places[found[1]]}", text)
        return text, [made[number - 1] for number in used]

    def statement(self) -> str:
        """A query whose rows are determined, as a multiset."""
        common = [self._plain, self._grouped, self._joined]
        others = [
            self._limited,
            self._set_operation,
            self._with,
            self._window,
            self._whole_table,
            self._nested,
            *self._rarer(),
        ]
        shape = self.chosen.choice([*common, *common, *others])
        return shape()

    # ---- shapes --------------------------------------------------------------------------------------------

    def _plain(self) -> str:
        source, scopes = self._from(1)
        distinct = self.chosen.choice(["", "", "", "DISTINCT "])
        return f"SELECT {distinct}{self._items(scopes)} FROM {source}{self._where(scopes)}"

    def _joined(self) -> str:
        source, scopes = self._from(self.chosen.choice([2, 2, 3]))
        return f"SELECT {self._items(scopes)} FROM {source}{self._where(scopes)}"

    def _grouped(self) -> str:
        source, scopes = self._from(self.chosen.choice([1, 1, 1, 2]))
        keys = [self._key(scopes) for _ in range(self.chosen.choice([1, 1, 2]))]
        named = [f"{key} AS k{number}" for number, key in enumerate(keys)]
        found = [f"{self._aggregate(scopes)} AS a{number}" for number in range(self.chosen.choice([1, 2, 3]))]
        having = (
            f" HAVING {self.chosen.choice(['count(*) > 1', 'min(' + self._key(scopes) + ') IS NOT NULL'])}"
        )
        return (
            f"SELECT {', '.join([*named, *found])} FROM {source}{self._where(scopes)} "
            f"GROUP BY {', '.join(keys)}{self.chosen.choice(['', '', having])}"
        )

    def _whole_table(self) -> str:
        source, scopes = self._from(1)
        found = [self._aggregate(scopes) for _ in range(self.chosen.choice([1, 2, 3]))]
        named = ", ".join(f"{text} AS a{number}" for number, text in enumerate(found))
        return f"SELECT {named} FROM {source}{self.chosen.choice(['', self._where(scopes)])}"

    def _limited(self) -> str:
        source, scopes = self._from(self.chosen.choice([1, 1, 1, 2]))
        items = self._item_list(scopes, sortable=True)
        orders = [f"{number}{self._direction()}" for number in range(1, len(items) + 1)]
        self.chosen.shuffle(orders)
        limit = f"LIMIT {self.chosen.choice([0, 1, 3, 10, 500])}"
        offset = self.chosen.choice(["", "", f" OFFSET {self.chosen.choice([0, 1, 7, 400])}"])
        named = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
        return (
            f"SELECT {named} FROM {source}{self._where(scopes)} ORDER BY {', '.join(orders)} {limit}{offset}"
        )

    def _set_operation(self) -> str:
        words = ["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"]
        word = self.chosen.choice([*words, "UNION ALL BY NAME"] if self.is_duckdb else words)
        sides = []
        for _ in range(2):
            source, scopes = self._from(1)
            sides.append(
                f"SELECT {scopes[0].alias}.k, {scopes[0].alias}.s FROM {source}{self._where(scopes)}"
            )
        return f" {word} ".join(sides)

    def _with(self) -> str:
        table = self.chosen.choice(self.tables)
        scope = Scope(self._alias(), table.columns)
        #: the name of another table, or a new one
        name = self.chosen.choice([self.chosen.choice(self.tables).name, "within"])
        inner = f"SELECT * FROM {quoted(table.name)} {scope.alias}{self._where([scope])}"
        if name == table.name:
            name = "within"
        outer = Scope(self._alias(), table.columns)
        other = self._joinable(table.rows.num_rows)
        also = Scope(self._alias(), other.columns)
        return (
            f"WITH {quoted(name)} AS ({inner}) SELECT {self._items([outer, also])} "
            f"FROM {quoted(name)} {outer.alias} JOIN {quoted(other.name)} {also.alias} "
            f"ON {self._equality(outer, also)}{self._where([outer, also])}"
        )

    def _window(self) -> str:
        source, scopes = self._from(1)
        scope = scopes[0]
        over = f"(PARTITION BY {self._key(scopes)} ORDER BY {scope.alias}.k)"
        functions = [
            "rank()",
            "dense_rank()",
            "count(*)",
            "sum(g)",
            "min(g)",
            "max(k)",
            "lag(k)",
            "first_value(k)",
        ]
        function = (
            self.chosen.choice(functions)
            .replace("(g", f"({scope.alias}.g")
            .replace("(k", f"({scope.alias}.k")
        )
        if function.startswith("sum"):
            frames = [
                "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
                "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
            ]
            over = f"{over[:-1]} {self.chosen.choice(frames)})"
        window = f"{function} OVER {over}"
        # Which of several rows with the same k comes first is not determined.
        items = f"{scope.alias}.k AS c0" if function.startswith("lag") else self._items(scopes)
        if self.chosen.random() < 0.3:
            return (
                f"SELECT {items} FROM {source}{self._where(scopes)} "
                f"QUALIFY {window} <= {self.chosen.randint(0, 5)}"
            )
        return f"SELECT {items}, {window} AS w FROM {source}{self._where(scopes)}"

    def _nested(self) -> str:
        table = self.chosen.choice(self.tables)
        inner = Scope(self._alias(), table.columns)
        items = [column for column in table.columns if self.chosen.random() < 0.6] or list(table.columns[:1])
        named = ", ".join(f"{inner.name(column)} AS {quoted(column.name)}" for column in items)
        outer = Scope(self._alias(), tuple(items))
        limit = (
            self.chosen.choice(["", f" ORDER BY ALL LIMIT {self.chosen.choice([2, 20])}"])
            if self.is_duckdb
            else ""
        )
        return (
            f"SELECT {self._items([outer])} FROM (SELECT {named} FROM {quoted(table.name)} {inner.alias}"
            f"{self._where([inner])}{limit}) {outer.alias}{self._where([outer])}"
        )

    # ---- shapes that are drawn less often ------------------------------------------------------------------

    def _rarer(self) -> list[Callable[[], str]]:
        shared = [self._lateral, self._scalar, self._recursive, self._grouping_sets, self._semi, self._values]
        return [*shared, self._pivot, self._asof, self._unnest] if self.is_duckdb else shared

    def _two(self) -> tuple[str, Scope, str, Scope]:
        """Two tables, with the texts that name them."""
        source, (scope,) = self._from(1)
        table = self._joinable(next(one for one in self.tables if one.columns is scope.columns).rows.num_rows)
        other = Scope(self._plain_alias(), table.columns)
        return source, scope, f"{quoted(table.name)} {other.alias}", other

    def _lateral(self) -> str:
        source, scope, inner, other = self._two()
        test = f"{other.alias}.g = {scope.alias}.g AND {self.condition([other], 1)}"
        return (
            f"SELECT {self._items([scope])}, l.m FROM {source}, "
            f"LATERAL (SELECT max({other.alias}.k) AS m FROM {inner} WHERE {test}) l{self._where([scope])}"
        )

    def _scalar(self) -> str:
        source, scope, inner, other = self._two()
        test = f"{other.alias}.k = {scope.alias}.k AND {self.condition([other], 1)}"
        value = self.chosen.choice(["count(*)", f"min({other.alias}.g)", f"sum({other.alias}.g)"])
        return (
            f"SELECT {self._items([scope])}, (SELECT {value} FROM {inner} WHERE {test}) AS n "
            f"FROM {source}{self._where([scope])}"
        )

    def _recursive(self) -> str:
        source, scope, inner, other = self._two()
        return (
            f"WITH RECURSIVE r AS (SELECT {scope.alias}.g AS n FROM {source}{self._where([scope])} UNION "
            f"SELECT {other.alias}.g + 1 AS n FROM r JOIN {inner} ON {other.alias}.g = r.n "
            f"WHERE {other.alias}.g < {self.chosen.randint(1, 9)}) SELECT n FROM r"
        )

    def _grouping_sets(self) -> str:
        source, scopes = self._from(1)
        first, second = f"{scopes[0].alias}.g", self._key(scopes)
        every = f"GROUPING SETS (({first}), ({second}), ())"
        sets = self.chosen.choice([f"ROLLUP ({first}, {second})", f"CUBE ({first}, {second})", every])
        return (
            f"SELECT {first} AS k0, {second} AS k1, {self._aggregate(scopes)} AS a FROM {source}"
            f"{self._where(scopes)} GROUP BY {sets}"
        )

    def _semi(self) -> str:
        source, scope, inner, other = self._two()
        kind = self.chosen.choice(["SEMI", "ANTI"])
        side = "" if self.is_duckdb else "LEFT "
        return (
            f"SELECT {self._items([scope])} FROM {source} {side}{kind} JOIN {inner} ON "
            f"{self._equality(scope, other)}{self._where([scope])}"
        )

    def _values(self) -> str:
        source, (scope,) = self._from(1)
        rows = ", ".join(f"({self.chosen.randint(-1, 20)}, '{word}')" for word in ("a", "ab", "ä"))
        on = self.chosen.choice(
            [f"{scope.alias}.k = v.n", f"{scope.alias}.s = v.w", f"{scope.alias}.g < v.n"]
        )
        kind = self.chosen.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
        return (
            f"SELECT {self._items([scope])}, v.n FROM {source} {kind} (VALUES {rows}) v(n, w) ON {on}"
            f"{self._where([scope])}"
        )

    def _pivot(self) -> str:
        source, (scope,) = self._from(1)
        alias = scope.alias
        if self.chosen.random() < 0.3:
            rows = f"SELECT {alias}.k, {alias}.g FROM {source}{self._where([scope])}"
            return f"SELECT * FROM (UNPIVOT ({rows}) ON k, g INTO NAME n VALUE v)"
        rows = f"SELECT {alias}.k, {alias}.g, {alias}.s FROM {source}{self._where([scope])}"
        found = self.chosen.choice(["count(*)", "max(k)", "min(s), count(k)"])
        return f"SELECT * FROM (PIVOT ({rows}) ON g IN (0, 1, 5) USING {found} GROUP BY s)"

    def _asof(self) -> str:
        source, scope, inner, other = self._two()
        kind = self.chosen.choice(["ASOF JOIN", "ASOF LEFT JOIN"])
        return (
            f"SELECT {self._items([scope])}, {other.alias}.k FROM {source} {kind} {inner} ON "
            f"{scope.alias}.g = {other.alias}.g AND {scope.alias}.k >= {other.alias}.k{self._where([scope])}"
        )

    def _unnest(self) -> str:
        source, scopes = self._from(1)
        lists = [one for one in scopes[0].columns if one.kind.group == "list"]
        if not lists:
            items = f"{scopes[0].alias}.k, {scopes[0].alias}.g"
            return f"SELECT DISTINCT ON (2) {items} FROM {source}{self._where(scopes)} ORDER BY 2, 1"
        name = scopes[0].name(self.chosen.choice(lists))
        return self.chosen.choice(
            [
                f"SELECT {scopes[0].alias}.k, unnest({name}) FROM {source}{self._where(scopes)}",
                f"SELECT {scopes[0].alias}.g, e.x FROM {source}, unnest({name}) e(x){self._where(scopes)}",
            ]
        )

    # ---- FROM and WHERE ------------------------------------------------------------------------------------

    def _alias(self) -> str:
        self._aliases += 1
        odd = ["s", "k", "g", "t9", "A b", "order"] if self.is_duckdb else ["u", "t9"]
        return quoted(f"{self.chosen.choice(odd)}{self._aliases}")

    def _from(self, count: int) -> tuple[str, list[Scope]]:
        first = self.chosen.choice(self.tables)
        scopes = [Scope(self._plain_alias(), first.columns)]
        source = f"{quoted(first.name)} {scopes[0].alias}"
        pairs = first.rows.num_rows
        for _ in range(count - 1):
            other = self._joinable(pairs)
            pairs *= max(1, other.rows.num_rows)
            scope = Scope(self._plain_alias(), other.columns)
            kind = self.chosen.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            on = self._equality(self.chosen.choice(scopes), scope)
            also = f" AND {self.condition([scope])}" if self.chosen.random() < 0.3 else ""
            source += f" {kind} {quoted(other.name)} {scope.alias} ON {on}{also}"
            scopes.append(scope)
        return source, scopes

    def _joinable(self, pairs: int) -> RandomTable:
        """A table whose join with so many rows stays small."""
        few = [table for table in self.tables if pairs * table.rows.num_rows <= _MOST_PAIRS]
        return self.chosen.choice(few) if few else min(self.tables, key=lambda table: table.rows.num_rows)

    def _plain_alias(self) -> str:
        self._aliases += 1
        return f"{self.chosen.choice(['s', 'k', 'g', 'u'])}{self._aliases}"

    def _equality(self, left: Scope, right: Scope) -> str:
        for _ in range(5):
            mine, other = self.chosen.choice(left.columns), self.chosen.choice(right.columns)
            if (
                mine.kind.group == other.kind.group
                and mine.kind.group in _JOINED
                and "k" not in (mine.name, other.name)
            ):
                return f"{left.name(mine)} = {right.name(other)}"
        return (
            f"{left.alias}.k = {right.alias}.k"
            if self.chosen.random() < 0.8
            else f"{left.alias}.k = {right.alias}.g"
        )

    def _where(self, scopes: list[Scope]) -> str:
        if self.chosen.random() < 0.25:
            return ""
        return f" WHERE {self.condition(scopes)}"

    def condition(self, scopes: list[Scope], depth: int = 0) -> str:
        """A condition on rows of tables."""
        pick = self.chosen.random()
        if depth < 2 and pick < 0.35:
            word = self.chosen.choice(["AND", "AND", "OR"])
            return f"({self.condition(scopes, depth + 1)} {word} {self.condition(scopes, depth + 1)})"
        if depth < 2 and pick < 0.42:
            return f"NOT ({self.condition(scopes, depth + 1)})"
        if pick < 0.5:
            return self._subquery(scopes)
        scope = self.chosen.choice(scopes)
        column = self.chosen.choice(scope.columns)
        return self._test(scope, column)

    def _subquery(self, scopes: list[Scope]) -> str:
        table, scope = self.chosen.choice(self.tables), self.chosen.choice(scopes)
        inner = Scope(self._plain_alias(), table.columns)
        source = f"FROM {quoted(table.name)} {inner.alias}"
        test = self._test(inner, self.chosen.choice(inner.columns))
        nots = self.chosen.choice(["", "", "NOT "])
        return self.chosen.choice(
            [
                f"{scope.alias}.k {nots}IN (SELECT {inner.alias}.k {source} WHERE {test})",
                f"{nots}EXISTS (SELECT 1 {source} WHERE {inner.alias}.k = {scope.alias}.k AND {test})",
                f"{scope.alias}.g >= (SELECT min({inner.alias}.g) {source} WHERE {test})",
                f"({scope.alias}.k, {scope.alias}.g) {nots}IN "
                f"(SELECT {inner.alias}.k, {inner.alias}.g {source})",
                f"{scope.alias}.g {self.chosen.choice(['= ANY', '<> ALL', '> ALL'])} "
                f"(SELECT {inner.alias}.g {source} WHERE {test})",
            ]
        )

    def _test(self, scope: Scope, column: Column) -> str:
        name, group = scope.name(column), column.kind.group
        pick = self.chosen.random()
        if pick < 0.12:
            return f"{name} IS {self.chosen.choice(['', 'NOT '])}NULL"
        match group:
            case "list":
                size = "len" if self.is_duckdb else "array_length"
                return self.chosen.choice(
                    [f"{size}({name}) > 1", f"{size}({name}) = 2", f"{name} IS NOT NULL"]
                )
            case "struct":
                part = f"({name}).a" if self.is_duckdb else f"{name}['a']"
                return self.chosen.choice([f"{part} > 5", f"{part} IS NULL", f"{part} IN (1, 2, 7)"])
            case "deep" | "map" | "other":
                if not column.kind.inside:
                    return f"{name} IS NOT NULL"
                part = self._inside(name, column)
                return self.chosen.choice([f"{part} > 5", f"{part} IS NULL", f"{part} IN (1, 2, 7)"])

        def made() -> str:
            return self._written(column.kind.make)

        compared = self.chosen.choice(["=", "<>", "<", "<=", ">", ">="])
        listed = ", ".join(made() for _ in range(self.chosen.choice([1, 2, 40])))
        options = [
            f"{name} {compared} {made()}",
            f"{name} {self.chosen.choice(['', 'NOT '])}IN ({listed})",
            f"({name} BETWEEN {made()} AND {made()})",
            f"({name} IS {self.chosen.choice(['', 'NOT '])}DISTINCT FROM {made()})",
            f"coalesce({name}, {made()}) {compared} {made()}",
        ]  # fmt: skip
        match group:
            case "boolean":
                return self.chosen.choice([name, f"NOT {name}", f"{name} IS TRUE", f"{name} = false"])
            case "text":
                like = self.chosen.choice(["LIKE", "NOT LIKE", "ILIKE"])
                # With parameters they are what is pushed down for some values only.
                often = 2 if self._parameters is None else 8
                options += [f"{name} {like} {self._written(_pattern)}"] * often
                options += [
                    f"starts_with({name}, 'a')",
                    f"length({name}) {compared} 2",
                    f"upper({name}) = 'AB'",
                ]
            case "number":
                options += [
                    f"{name} % 3 = {self.chosen.randint(0, 2)}",
                    f"abs(CAST({name} AS DOUBLE)) {compared} 5",
                ]
                others = [other for other in scope.columns if other.kind.group in _NUMERIC]
                options += [f"{name} {compared} {scope.name(self.chosen.choice(others))}"] * 2
        return self.chosen.choice(options)

    def _written(self, make: Make) -> str:
        """A value, or a parameter for one."""
        if self._parameters is not None and self.chosen.random() < 0.8:
            self._parameters.append(make)
            return f"${len(self._parameters)}"
        return literal(make(self.chosen), self.is_duckdb)

    def _inside(self, name: str, column: Column) -> str:
        """A number inside a nested value."""
        return self.chosen.choice(column.kind.inside)[not self.is_duckdb].format(name)

    # ---- SELECT --------------------------------------------------------------------------------------------

    def _items(self, scopes: list[Scope]) -> str:
        items = self._item_list(scopes)
        return ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))

    def _item_list(self, scopes: list[Scope], *, sortable: bool = False) -> list[str]:
        items = []
        for _ in range(self.chosen.choice([1, 2, 3, 4])):
            scope = self.chosen.choice(scopes)
            column = self.chosen.choice(scope.columns)
            name, group = scope.name(column), column.kind.group
            if sortable and group in NESTED:
                name, group = f"{scope.alias}.g", "number"
            pick = self.chosen.random()
            if pick < 0.7:
                items.append(name)
            elif group == "text":
                items.append(
                    self.chosen.choice(
                        [f"upper({name})", f"length({name})", f"{name} || '!'", f"{name} LIKE 'a%'"]
                    )
                )
            elif column.kind.inside:
                items.append(self._inside(name, column))
            elif group == "struct":
                items.append(f"({name}).a" if self.is_duckdb else f"{name}['a']")
            elif group in ("number", "decimal", "float", "date", "moment"):
                test = self._test(scope, column)
                items.append(
                    self.chosen.choice([f"CASE WHEN {test} THEN 1 ELSE 0 END", f"coalesce({name}, {name})"])
                )
            else:
                items.append(name)
        return items

    def _key(self, scopes: list[Scope]) -> str:
        scope = self.chosen.choice(scopes)
        columns = [column for column in scope.columns if column.kind.group not in (*NESTED, "float")]
        column = self.chosen.choice(columns)
        name = scope.name(column)
        if column.kind.group == "text" and self.chosen.random() < 0.3:
            return self.chosen.choice([f"upper({name})", f"length({name})"])
        return name

    def _aggregate(self, scopes: list[Scope]) -> str:
        scope = self.chosen.choice(scopes)
        column = self.chosen.choice(scope.columns)
        name, group = scope.name(column), column.kind.group
        options = ["count(*)", f"count({name})"]
        if group not in NESTED:
            options += [f"min({name})", f"max({name})", f"count(DISTINCT {name})"]
            # DataFusion has no least boolean; whether NaN or a number is least depends on the order of rows.
            if group in ("boolean", "float") and not self.is_duckdb:
                options = options[:2]
        if group == "number" and column.kind.arrow.bit_width < 64:
            options += [f"sum({name})"] * 2
            if self.is_duckdb:
                options += [
                    f"sum({name}) FILTER (WHERE {self._test(scope, column)})",
                    f"sum(DISTINCT {name})",
                ]
                options += [f"list({name} ORDER BY {name})", f"quantile_disc({name}, 0.5)", f"max({name}, 3)"]
                options += [f"count_if({self._test(scope, column)})", f"bit_xor({name})"]
        if group == "text" and self.is_duckdb:
            options += [f"string_agg({name}, ',' ORDER BY {name})", f"max(length({name}))"]
        return self.chosen.choice(options)

    def _direction(self) -> str:
        return self.chosen.choice(["", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST", " NULLS LAST"])


def literal(value: Any, is_duckdb: bool = True) -> str:
    """A value as an engine reads it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            return (
                f"CAST('{value}' AS DOUBLE)"
                if value != value or abs(value) > 1e308
                else f"CAST({value} AS DOUBLE)"
            )
        case int() | Decimal():
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            text = value.decode() if value.isascii() else "a"
            return f"CAST('{text}' AS BLOB)" if is_duckdb else f"X'{text.encode().hex()}'"
        case datetime.datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
    raise TypeError(type(value))
