"""Random calls of the dataset API on two equal tables: ours on one, pylance's on the other, equal outcomes.

After each call both tables have equal columns and rows, by our reader and by pylance's, or both calls failed.
"""

from __future__ import annotations

import random
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import lance
import pyarrow as pa
from lance_engine.errors import LanceError, UnsupportedFeatureError, UnsupportedTypeError
from random_queries import literal
from random_tables import INDEX_KINDS, KINDS, NESTED, Column, Kind, _number, _or_null
from twin_reads import reads

import lance_sql

#: Calls of one round.
CALLS: Final = 12
_TYPES: Final = (
    *(pa.int64(), pa.int32(), pa.int8(), pa.float32(), pa.float64(), pa.bool_(), pa.decimal128(20, 3)),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    *(pa.date32(), pa.timestamp("us"), pa.timestamp("ns")),
)
Call = tuple[Callable[[lance_sql.Dataset], object], Callable[[lance.LanceDataset], object]]


class TwinsDifferError(AssertionError):
    """The two calls have different outcomes."""


class RefusedError(Exception):
    """Ours refuses a call, and says what to do instead; or only pylance fails."""


class Twins:
    """Two copies of a random dataset, and random calls on both; the same seed makes the same ones."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chosen = chosen = random.Random(seed)
        self.paths = [str(folder / "ours.lance"), str(folder / "theirs.lance")]
        self.columns = [Column("id", Kind(pa.int64(), _number(0, 30), "number"))]
        self.columns += [Column(f"c{number}", chosen.choice(KINDS)) for number in range(chosen.randint(1, 5))]
        self.required = {column.name for column in self.columns if chosen.random() < 0.08}
        self.added = 0
        self.tags: list[str] = []
        self.log: list[str] = []
        groups = {column.kind.group for column in self.columns}
        version = chosen.choice(["2.1", "2.2"] if groups & {"struct", "deep"} else ["2.0", "2.1", "2.2"])
        self.version = "2.2" if "map" in groups else version
        stable = chosen.random() < 0.3
        for number in range(chosen.choice([1, 1, 2, 3])):
            lance.write_dataset(
                self.rows(chosen.choice([0, 1, 5, 40])),
                self.paths[0],
                mode="append" if number else "create",
                data_storage_version=self.version,
                max_rows_per_file=chosen.choice([7, 1000]),
                enable_stable_row_ids=stable,
            )
        self.branch = "trial" if chosen.random() < 0.15 else None
        if self.branch:
            lance.dataset(self.paths[0]).create_branch(self.branch)
        self.log.append(f"{self.version}, stable={stable}, branch={self.branch}: {self.theirs(0).schema!s}")
        shutil.copytree(self.paths[0], self.paths[1])

    def ours(self, place: int = 0) -> lance_sql.Dataset:
        return lance_sql.open(self.paths[place], branch=self.branch)

    def theirs(self, place: int = 1) -> lance.LanceDataset:
        return lance.dataset(self.paths[place]).checkout_version((self.branch, None))

    # ---- values --------------------------------------------------------------------------------------------

    def schema(self) -> pa.Schema:
        return pa.schema(
            [pa.field(one.name, one.kind.arrow, one.name not in self.required) for one in self.columns]
        )

    def rows(self, count: int, columns: list[Column] | None = None) -> pa.Table:
        chosen, columns = self.chosen, columns or self.columns
        nulls = {
            one.name: 0 if one.name in self.required else chosen.choice([0, 0.1, 0.5, 1]) for one in columns
        }
        nulls["id"] = min(nulls.get("id", 0), 0.1)
        return pa.table(
            {
                one.name: pa.array(
                    [_or_null(one.kind.make, chosen, nulls[one.name]) for _ in range(count)], one.kind.arrow
                )
                for one in columns
            },
            schema=pa.schema([self.schema().field(one.name) for one in columns]),
        )

    def value(self, column: Column, prefix: str = "") -> str:
        value = column.kind.make(self.chosen)
        # In conditions of merges, pylance takes -0.0 for less than 0.0; its filters do not.
        return literal(0.5 if prefix and isinstance(value, float) and value == 0 else value, False)

    def plain(self) -> list[Column]:
        """The columns whose values have literals."""
        return [column for column in self.columns if column.kind.group not in NESTED]

    def test(self, prefix: str = "") -> str:
        """A condition in the language of filters."""
        chosen = self.chosen
        pick = chosen.random()
        if pick < 0.15:
            return f"({self.test(prefix)} {chosen.choice(['AND', 'OR'])} {self.test(prefix)})"
        if pick < 0.2:
            return f"NOT ({self.test(prefix)})"
        column = chosen.choice(self.columns)
        name, group = prefix + column.name, column.kind.group
        if pick < 0.3 or group in NESTED:
            inside = [one[1].format(name) for one in column.kind.inside]
            inside += [f"array_length({name})"] if group == "list" else []
            inside += [f"{name}['a']"] if group == "struct" else []
            return (
                f"{chosen.choice(inside)} > 1"
                if inside and pick > 0.5
                else (f"{name} IS {chosen.choice(['', 'NOT '])}NULL")
            )
        compared = chosen.choice(["=", "<>", "<", "<=", ">", ">="])
        options = [
            f"{name} {compared} {self.value(column, prefix)}",
            f"{name} IN ({self.value(column, prefix)}, {self.value(column, prefix)})",
            f"{name} BETWEEN {self.value(column, prefix)} AND {self.value(column, prefix)}",
        ]
        if group == "text":
            options += [f"{name} LIKE 'a%'", f"starts_with({name}, 'a')", f"length({name}) > 1"]
        if group == "number":
            options += [f"{name} % 3 = 1", f"{name} = id"]
        return chosen.choice(options)

    # ---- calls ---------------------------------------------------------------------------------------------

    def append(self) -> Call:
        chosen = self.chosen
        columns = list(self.columns)
        if chosen.random() < 0.3:
            chosen.shuffle(columns)
        if chosen.random() < 0.2:
            columns = [column for column in columns if chosen.random() < 0.7] or columns
        rows = self.rows(chosen.choice([0, 1, 3, 10]), columns)
        if chosen.random() < 0.15:
            place = chosen.randrange(len(columns))
            with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                other = rows.column(place).cast(chosen.choice(_TYPES))
                rows = rows.set_column(place, columns[place].name, other)
        if chosen.random() < 0.05:
            rows = rows.append_column("extra", pa.nulls(len(rows), pa.int32()))
        self.log.append(f"append {len(rows)} rows of {rows.schema.names} {rows.schema.types}")
        return (
            lambda ours: lance_sql.write(rows, ours.uri, "append"),
            lambda theirs: lance.write_dataset(rows, theirs, mode="append"),
        )

    def overwrite(self) -> Call:
        rows = self.rows(self.chosen.choice([0, 3]))
        self.log.append(f"overwrite with {len(rows)} rows")
        return (
            lambda ours: lance_sql.write(rows, ours.uri, "overwrite"),
            lambda theirs: lance.write_dataset(rows, theirs, mode="overwrite"),
        )

    def delete(self) -> Call:
        where = self.test()
        self.log.append(f"delete({where!r})")
        return lambda ours: ours.delete(where), lambda theirs: theirs.delete(where)

    def update(self) -> Call:
        chosen, where = self.chosen, self.chosen.choice([None, self.test()])
        values: dict[str, str] = {}
        for _ in range(chosen.choice([1, 1, 2])):
            column = chosen.choice(self.columns)
            if "id" in values or (column.name == "id" and values):
                break  # pylance sets columns one after the other: what is set must not be read
            options = ["NULL", column.name]
            if column.kind.group not in NESTED:
                options += [self.value(column)] * 3
            if column.kind.group == "number":
                options += [f"{column.name} % 7", "id + 1", "id"]
            values[column.name] = chosen.choice(options)
        self.log.append(f"update({values!r}, {where!r})")
        return lambda ours: ours.update(values, where), lambda theirs: theirs.update(values, where)

    def merge(self) -> Call:
        chosen = self.chosen
        plain = [one for one in self.plain() if one.kind.group != "float"]
        keys = list(dict.fromkeys(["id", *chosen.choice([[], [], [chosen.choice(plain).name]])]))
        columns = list(self.columns)
        if chosen.random() < 0.2:
            columns = [one for one in columns if one.name in keys or chosen.random() < 0.6]
        rows = self.rows(chosen.choice([0, 1, 4, 10]), columns)
        found = {tuple(row[key] for key in keys): row for row in rows.to_pylist()}
        if any(name in keys for index in self.theirs().describe_indices() for name in index.field_names):
            # pylance inserts rows without a key only if the keys have no index
            found = {key: row for key, row in found.items() if None not in key}
        rows = pa.Table.from_pylist(list(found.values()), rows.schema)
        if is_repeated := chosen.random() < 0.3:  # a second row for each of some keys
            again = self.rows(len(rows), columns)
            for key in keys:
                again = again.set_column(rows.schema.get_field_index(key), rows.schema.field(key), rows[key])
            rows = pa.concat_tables([rows, again.slice(chosen.choice([0, 2]))])
        matched = (
            "update if" if is_repeated else chosen.choice(["", "update", "update", "update if", "delete"])
        )
        insert, by_source = chosen.random() < 0.6, chosen.choice(["", "", "delete", "delete if"])
        if matched == by_source == "" and not insert:
            insert = True
        condition = self.test("source.")  # which differs between rows of one key
        if not is_repeated and chosen.random() < 0.8:
            condition = chosen.choice(
                ["source.id > 10", "target.id < 20 OR source.id IS NULL", self.test("target.")]
            )
        where = self.test()
        self.log.append(
            f"merge on {keys}: {matched} ({condition}), insert={insert}, {by_source} ({where}); "
            f"{rows.to_pylist()} {rows.schema.types}"
        )

        def run(builder: Any) -> object:
            if matched.startswith("update"):
                builder = builder.when_matched_update_all(*([condition] if matched == "update if" else []))
            elif matched:
                builder = builder.when_matched_delete()
            if insert:
                builder = builder.when_not_matched_insert_all()
            if by_source:
                builder = builder.when_not_matched_by_source_delete(*([where] if "if" in by_source else []))
            return builder

        return (
            lambda ours: run(ours.merge(rows, keys)).execute(),
            lambda theirs: run(theirs.merge_insert(keys)).execute(rows),
        )

    def add_columns(self) -> Call:
        self.added += 1
        name, column = f"n{self.added}", self.chosen.choice(self.columns)
        options = [
            column.name,
            "id + 1",
            "id % 3",
            "'x'",
            "CAST(1.5 AS double)",
            "CAST(id AS string)",
            f"{column.name} IS NULL",
        ]
        text = self.chosen.choice(options)
        field = pa.field(name, self.chosen.choice(KINDS).arrow)
        if self.chosen.random() < 0.3:
            self.log.append(f"add_columns({field!s})")
            return (
                lambda ours: ours.add_columns(pa.schema([field])),
                lambda theirs: theirs.add_columns(pa.schema([field])),
            )
        self.log.append(f"add_columns({name}: {text})")
        return lambda ours: ours.add_columns({name: text}), lambda theirs: theirs.add_columns({name: text})

    def drop_columns(self) -> Call:
        name = self.chosen.choice(self.columns[1:] or self.columns).name
        self.log.append(f"drop_columns({name})")
        return lambda ours: ours.drop_columns([name]), lambda theirs: theirs.drop_columns([name])

    def alter(self) -> Call:
        column = self.chosen.choice(self.columns)
        change: dict[str, Any]
        match self.chosen.randint(0, 2):
            case 0:
                self.added += 1
                change = {"name": f"r{self.added}"}
                if column.name == "id":
                    change = {"nullable": True}
            case 1:
                change = {"nullable": self.chosen.random() < 0.5}
            case _:
                change = {"data_type": self.chosen.choice(_TYPES)}
                if column.name == "id":
                    change = {"data_type": pa.int64()}
        self.log.append(f"alter {column.name} {change}")

        def ours(dataset: lance_sql.Dataset) -> object:
            if "name" in change:
                return dataset.rename_column(column.name, change["name"])
            return dataset.alter_column(
                column.name, type=change.get("data_type"), nullable=change.get("nullable")
            )

        def theirs(dataset: lance.LanceDataset) -> object:
            if "data_type" in change:
                # It refuses to leave indices behind that no longer fit.
                for index in dataset.describe_indices():
                    if column.name in index.field_names:
                        dataset.drop_index(index.name)
            return dataset.alter_columns({"path": column.name, **change})

        return ours, theirs

    def index(self) -> Call:
        kind, column = self.chosen.choice(INDEX_KINDS), self.chosen.choice(self.columns).name
        self.log.append(f"create_index({column}, {kind})")
        return (
            lambda ours: ours.create_index(column, kind, replace=True),
            lambda theirs: theirs.create_scalar_index(column, kind.upper(), replace=True),
        )

    def optimize(self) -> Call:
        self.log.append("optimize_indices")
        return lambda ours: ours.optimize_indices(), lambda theirs: theirs.optimize.optimize_indices()

    def compact(self) -> Call:
        target = self.chosen.choice([20, 1000])
        self.log.append(f"compact({target})")
        return (
            lambda ours: ours.compact(target_rows=target),
            lambda theirs: theirs.optimize.compact_files(target_rows_per_fragment=target),
        )

    def restore(self) -> Call:
        self.log.append("restore(1)")
        return lambda ours: ours.restore(1), lambda theirs: theirs.checkout_version(1).restore()

    def tag(self) -> Call:
        name = f"t{self.chosen.randint(0, 2)}"
        self.log.append(f"tag {name}")
        change = self.chosen.choice(["create", "create", "update", "delete"])
        rest = [] if change == "delete" else [1]
        return (
            lambda ours: getattr(ours.tags, change)(name, *rest),
            lambda theirs: getattr(theirs.tags, change)(name, *rest),
        )

    def clean_up(self) -> Call:
        self.log.append("cleanup")
        return (
            lambda ours: ours.cleanup(timedelta(0)),
            lambda theirs: theirs.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False),
        )

    # ---- comparisons ---------------------------------------------------------------------------------------

    def run(self) -> str:
        """One call on both; "done" or "failed", TwinsDifferError if they disagree."""
        call = self.chosen.choices(
            [Twins.append, Twins.overwrite, Twins.delete, Twins.update, Twins.merge, Twins.add_columns,
             Twins.drop_columns, Twins.alter, Twins.index, Twins.optimize, Twins.compact, Twins.restore,
             Twins.tag, Twins.clean_up],
            [5, 1, 4, 6, 6, 3, 1, 4, 5, 2, 2, 1, 1, 1],
        )[0]  # fmt: skip
        by_us, by_them = call(self)
        ours, theirs = self.ours(), self.theirs()
        our_error, their_error = _error(by_us, ours), _error(by_them, theirs)
        if isinstance(our_error, UnsupportedFeatureError | UnsupportedTypeError) and their_error is None:
            raise RefusedError(f"{self.log[-1]}: {our_error}")
        if our_error is not None and not isinstance(our_error, LanceError):
            raise TwinsDifferError(f"ours: {our_error!r}")
        if our_error is None and their_error is not None:
            raise RefusedError(f"{self.log[-1]}: pylance: {their_error}")
        if "Cannot build" in str(our_error) and their_error is None:
            raise RefusedError(f"{self.log[-1]}: {our_error}")
        if our_error is not None and their_error is None:
            raise TwinsDifferError(f"ours: {our_error}\ntheirs: done")
        self.compare()
        return "done" if our_error is None else "failed"

    def compare(self) -> None:
        ours, theirs, mine = self.ours(), self.theirs(), self.theirs(0)
        if _types(mine.schema) != _types(theirs.schema):
            raise TwinsDifferError(f"columns of ours:\n{mine.schema}\nof theirs:\n{theirs.schema}")
        try:
            wanted = theirs.to_table()
        except Exception as error:  # such as rows appended without the columns that are left
            raise RefusedError(f"pylance cannot read its table: {error}") from error
        tables = {
            "ours": mine.to_table(),
            "ours as we read it": pa.table(ours.scan().to_table()),
            "theirs as we read it": self.ours(1).scan().to_table(),
        }
        expected = _rows(wanted)
        for name, table in tables.items():
            if (found := _rows(table)) != expected:
                raise TwinsDifferError(f"{name}: {_less(found, expected)}\ntheirs: {_less(expected, found)}")
        self.columns = self._known(theirs.schema)
        self.required = {field.name for field in mine.schema if not field.nullable}
        self.compare_reads(ours, mine)

    def _known(self, schema: pa.Schema) -> list[Column]:
        """The columns as they are now."""
        kinds = {column.name: column.kind for column in self.columns}
        found = []
        for field in schema:
            kind = kinds.get(field.name)
            if kind is None or kind.arrow != field.type:
                kind = next((one for one in KINDS if one.arrow == field.type), None)
                kind = kind or Kind(field.type, lambda chosen: None, "other")
            found.append(Column(field.name, kind))
        return found

    def compare_reads(self, ours: lance_sql.Dataset, mine: lance.LanceDataset) -> None:
        """Reads of one table by us and by pylance."""
        for name, (by_us, by_them) in reads(self.chosen, ours, mine, self.columns, self.test()).items():
            results = []
            for read in (by_us, by_them):
                try:
                    found = read()
                    found = found.to_pylist() if isinstance(found, pa.Table) else found
                    results.append(repr(found))
                except Exception as error:
                    results.append(f"error {error}")
            failed = [result.startswith("error ") for result in results]
            if not failed[1] and results[0] != results[1]:
                raise TwinsDifferError(f"{name}\nours: {results[0][:700]}\ntheirs: {results[1][:700]}")


def _types(schema: pa.Schema) -> list[object]:
    """Names and types; pylance's new columns of constants (n1, renamed r2) are not nullable, ours are."""
    return [(one.name, one.type, one.nullable or one.name.startswith(("n", "r"))) for one in schema]


def _rows(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


def _less(one: Counter[str], other: Counter[str]) -> str:
    return f"{one.total()} rows, of which {list((one - other).items())[:3]}"


def _error(call: Callable[[Any], object], dataset: Any) -> BaseException | None:
    try:
        with _silence():
            call(dataset)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # pylance's panics are not subclasses of Exception
        return error
    return None


@contextmanager
def _silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def round_of(folder: Path, seed: int) -> tuple[Counter[str], str | None]:
    """What came of the calls of a seed, and the calls after which the twins differ."""
    outcomes: Counter[str] = Counter()
    twins = Twins(folder, seed)
    try:
        for _ in range(CALLS):
            outcomes[twins.run()] += 1
    except RefusedError as refused:
        outcomes["refused"] += 1
        outcomes[f"refused: {str(refused)[:80]}"] += 0
    except TwinsDifferError as difference:
        outcomes["different"] += 1
        calls = "\n  ".join(twins.log)
        return outcomes, f"seed {seed}:\n  {calls}\n{difference}"
    return outcomes, None
