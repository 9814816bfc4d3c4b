"""Random operations on one dataset by us, by statements and by pylance, checked against a model after each.

A dataset may begin as old releases wrote it: without the highest fragment id in its manifest.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance_engine.format.manifest import parse_manifest_file, serialize_manifest_file

import lance_sql


@functools.cache
def kept_session(engine: str) -> lance_sql.Connection:
    """The session of this process."""
    return lance_sql.connect(engine=engine)


NO_TIME = datetime.timedelta(0)

Row = dict[str, Any]
#: Rows by their id, and the columns other than that.
Kept = tuple[dict[int, Row], list[str]]


class Model:
    """The expected rows by their unique id, and the names of the columns other than id."""

    def __init__(self, path: str, seed: int) -> None:
        self.path = path
        self.created = False
        self.random = random.Random(seed)
        self.rows: dict[int, Row] = {}
        self.columns = ["x", "s"]
        self.next_id = 0
        self.next_column = 0
        self.history: dict[int, Kept] = {}
        self.tags: dict[str, Kept] = {}
        self.branches: dict[str, Kept] = {}

    def ours(self) -> lance_sql.Dataset:
        return lance_sql.open(self.path)

    def theirs(self) -> lance.LanceDataset:
        return lance.dataset(self.path)

    def by_us(self) -> bool:
        return self.random.random() < 0.6

    def one_of(self, ours: Callable[[], object], theirs: Callable[[], object], *statements: str) -> None:
        """A change by our methods, by pylance, or by statements on the table ``{t}``."""
        chance = self.random.random()
        if chance < 0.4:
            ours()
        elif chance < 0.7:
            self.execute(*statements)
        else:
            theirs()

    def execute(self, *statements: str) -> None:
        """Run statements in a session that changed this dataset and others before, or in a new one."""
        engine = self.random.choice(["duckdb", "datafusion"])
        kept = self.random.random() < 0.9
        try:
            with nullcontext(kept_session(engine)) if kept else lance_sql.connect(engine=engine) as session:
                for statement in statements:
                    session.sql(statement.replace("{t}", f"'{self.path}'"))
        except BaseException:
            kept_session.cache_clear()  # it may be in a transaction
            raise

    def values(self, rows: Sequence[Row]) -> str:
        """Rows as VALUES of the id and all columns."""
        return ", ".join(
            f"({', '.join(self.literal(row[name], name) for name in ['id', *self.columns])})" for row in rows
        )

    def literal(self, value: object, name: str) -> str:
        kind = "VARCHAR" if name == "s" else "BIGINT"
        if value is None:
            return f"CAST(NULL AS {kind})"
        return f"'{value}'" if isinstance(value, str) else str(value)

    def new_rows(self, count: int) -> pa.Table:
        # Whole batches without nulls, or of nulls alone, are stored and indexed otherwise.
        nulls = self.random.choice([0, 0, 0.2, 0.6, 1])
        rows = [self.row(self.next_id + i, nulls) for i in range(count)]
        self.next_id += count
        return self.table(rows)

    def row(self, number: int, nulls: float = 0.2) -> Row:
        row: Row = {"id": number}
        for name in self.columns:
            is_null = self.random.random() < nulls
            row[name] = None if is_null else self.random.choice("abc" if name == "s" else range(5))
        return row

    def table(self, rows: list[Row]) -> pa.Table:
        types = {field.name: field.type for field in self.ours().schema} if self.created else {}
        fields = [("id", pa.int64())]
        fields += [(n, types.get(n, pa.string() if n == "s" else pa.int64())) for n in self.columns]
        return pa.Table.from_pylist(rows, schema=pa.schema(fields))

    def some(self) -> tuple[str, Callable[[Row], bool]]:
        """A condition as SQL text and as a function."""
        low = self.random.randrange(max(1, self.next_id))
        high = low + self.random.randrange(25)
        divisor = self.random.choice([1, 2, 3])
        text = f"id >= {low} AND id <= {high} AND id % {divisor} = 0"
        return text, lambda row: low <= row["id"] <= high and row["id"] % divisor == 0

    # Each operation changes dataset and model.

    def append(self) -> None:
        table = self.new_rows(self.random.randrange(1, 30))
        names = ", ".join(["id", *self.columns])
        self.one_of(
            lambda: lance_sql.write(table, self.path, mode="append"),
            lambda: lance.write_dataset(table, self.path, mode="append"),
            f"INSERT INTO {{t}} ({names}) VALUES {self.values(table.to_pylist())}",
        )
        self.rows |= {row["id"]: row for row in table.to_pylist()}

    def delete(self) -> None:
        text, test = self.some()
        self.one_of(
            lambda: self.ours().delete(text),
            lambda: self.theirs().delete(text),
            f"DELETE FROM {{t}} WHERE {text}",
        )
        self.rows = {key: row for key, row in self.rows.items() if not test(row)}

    def delete_by_row_id(self) -> None:
        keys = set(self.random.sample(sorted(self.rows), min(len(self.rows), self.random.randrange(4))))
        ours = self.ours()
        found = ours.scan(["id", "_rowid"]).to_table().to_pylist()
        ours.delete(row_ids=[row["_rowid"] for row in found if row["id"] in keys])
        self.rows = {key: row for key, row in self.rows.items() if key not in keys}

    def merge_by_clauses(self) -> None:
        low = self.random.randrange(max(1, self.next_id))
        numbers = list(range(low, low + 6))
        source = pa.table({"id": numbers, "n": [self.random.choice([0, 1, 2]) for _ in numbers]})
        (
            self.ours()
            .merge(source, on="id")
            .when_matched_delete("source.n = 0")
            .when_matched_update({"x": "source.n * 100 + target.id"}, "source.n = 1")
            .when_not_matched_insert({"id": "source.id", "x": "source.n"}, "source.n = 2")
            .when_not_matched_by_source_update({"x": "id"}, f"id > {low} AND id < {low + 12}")
            .execute()
        )
        for row in source.to_pylist():
            known = self.rows.get(row["id"])
            if known is None and row["n"] == 2:
                self.rows[row["id"]] = {"id": row["id"]} | dict.fromkeys(self.columns) | {"x": 2}
            elif known is not None and row["n"] == 0:
                del self.rows[row["id"]]
            elif known is not None and row["n"] == 1:
                known["x"] = 100 + row["id"]
        for key, row in self.rows.items():
            if low + 6 <= key < low + 12:
                row["x"] = key
        self.next_id = max(self.next_id, low + 6)

    def replace_column(self) -> None:
        name = self.random.choice([name for name in self.columns if name != "s"])
        self.ours().replace_columns({name: "id * 3"})
        for row in self.rows.values():
            row[name] = row["id"] * 3

    def alter_type(self) -> None:
        name = self.random.choice([name for name in self.columns if name != "s"])
        now = self.ours().schema.field(name).type
        wanted = pa.int32() if now == pa.int64() else pa.int64()
        if self.by_us():
            self.ours().alter_column(name, type=wanted)
        else:
            theirs = self.theirs()
            # It refuses to leave indices behind that no longer fit.
            indices = self.ours().inspect.indices().to_pylist()
            for index in {one["name"] for one in indices if name in one["columns"]}:  # of several parts
                theirs.drop_index(index)
            theirs.alter_columns({"path": name, "data_type": wanted})

    def update(self) -> None:
        text, test = self.some()
        name = self.random.choice([name for name in self.columns if name != "s"])
        self.one_of(
            lambda: self.ours().update({name: "id * 2 + 1"}, text),
            lambda: self.theirs().update({name: "id * 2 + 1"}, text),
            f"UPDATE {{t}} SET {name} = id * 2 + 1 WHERE {text}",
        )
        for row in self.rows.values():
            if test(row):
                row[name] = row["id"] * 2 + 1

    def merge(self) -> None:
        known = self.random.sample(sorted(self.rows), min(len(self.rows), self.random.randrange(6)))
        source = self.table([self.row(number) for number in known])
        source = pa.concat_tables([source, self.new_rows(self.random.randrange(1, 4))])
        names = ["id", *self.columns]
        sets = ", ".join(f"{name} = v.{name}" for name in self.columns)
        self.one_of(
            lambda: (
                self.ours()
                .merge(source, on="id")
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute()
            ),
            lambda: (
                self.theirs()
                .merge_insert("id")
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute(source)
            ),
            f"MERGE INTO {{t}} t USING (VALUES {self.values(source.to_pylist())}) v({', '.join(names)}) "
            f"ON t.id = v.id WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED THEN "
            f"INSERT ({', '.join(names)}) VALUES ({', '.join(f'v.{name}' for name in names)})",
        )
        self.rows |= {row["id"]: row for row in source.to_pylist()}

    def add_column(self) -> None:
        name = f"c{self.next_column}"
        self.next_column += 1
        if self.random.random() < 0.3:
            field = pa.field(name, pa.int64())
            self.one_of(
                lambda: self.ours().add_columns(field),
                lambda: self.theirs().add_columns(field),
                f"ALTER TABLE {{t}} ADD COLUMN {name} BIGINT",
            )
            values = dict.fromkeys(self.rows)
        else:
            change = {name: "id + 7"}
            self.ours().add_columns(change) if self.by_us() else self.theirs().add_columns(change)
            values = {key: key + 7 for key in self.rows}
        self.columns.append(name)
        for key, row in self.rows.items():
            row[name] = values[key]

    def drop_column(self) -> None:
        candidates = [name for name in self.columns if name not in ("x", "s")]
        if not candidates:
            return
        name = self.random.choice(candidates)
        self.one_of(
            lambda: self.ours().drop_columns([name]),
            lambda: self.theirs().drop_columns([name]),
            f"ALTER TABLE {{t}} DROP COLUMN {name}",
        )
        self.columns.remove(name)
        for row in self.rows.values():
            del row[name]

    def rename_column(self) -> None:
        old, new = self.random.choice(self.columns), f"r{self.next_column}"
        if old in ("x", "s"):
            return
        self.next_column += 1
        self.one_of(
            lambda: self.ours().rename_column(old, new),
            lambda: self.theirs().alter_columns({"path": old, "name": new}),
            f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}",
        )
        self.columns = [new if name == old else name for name in self.columns]
        for row in self.rows.values():
            row[new] = row.pop(old)

    def compact(self) -> None:
        target = self.random.choice([20, 50, 1000])
        if self.by_us():
            self.ours().compact(target_rows=target)
        else:
            self.theirs().optimize.compact_files(target_rows_per_fragment=target)

    def index(self) -> None:
        kind = self.random.choice(["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
        column = self.random.choice(["x", "id", "s"])
        self.one_of(
            lambda: self.ours().create_index(column, kind.lower(), replace=True),
            lambda: self.theirs().create_scalar_index(column, kind, replace=True),
            f"DROP INDEX IF EXISTS {column}_idx ON {{t}}",
            f"CREATE INDEX {column}_idx ON {{t}} USING {kind} ({column})",
        )

    def optimize(self) -> None:
        self.one_of(
            lambda: self.ours().optimize_indices(),
            lambda: self.theirs().optimize.optimize_indices(),
            "OPTIMIZE {t}",
        )

    def restore(self) -> None:
        if not self.history:
            return  # nothing is left behind a clean-up
        version = self.random.choice(sorted(self.history))
        if self.by_us():
            self.ours().restore(version)
        else:
            lance.dataset(self.path, version=version).restore()
        rows, columns = self.history[version]
        self.rows, self.columns = {key: dict(row) for key, row in rows.items()}, list(columns)

    def clean_up(self) -> None:
        if self.by_us():
            self.ours().cleanup(NO_TIME)
        else:
            self.theirs().cleanup_old_versions(NO_TIME, error_if_tagged_old_versions=False)
        self.history = {}

    def configure(self) -> None:
        self.ours().update_config({"a": str(self.random.random())})

    def transaction(self) -> None:
        """Changes that are committed together, or given up."""
        text, test = self.some()
        row = self.row(self.next_id)
        self.next_id += 1
        kept = self.random.random() < 0.7
        names = ", ".join(["id", *self.columns])
        self.execute(
            "BEGIN",
            f"UPDATE {{t}} SET x = id + 5 WHERE {text}",
            f"INSERT INTO {{t}} ({names}) VALUES {self.values([row])}",
            f"DELETE FROM {{t}} WHERE {text} AND id % 2 = 0",
            "COMMIT" if kept else "ROLLBACK",
        )
        if not kept:
            return
        for known in self.rows.values():
            if test(known):
                known["x"] = known["id"] + 5
        self.rows[row["id"]] = row
        self.rows = {key: known for key, known in self.rows.items() if not test(known) or key % 2}

    def tag(self) -> None:
        name = f"tag{len(self.tags)}"
        if self.by_us():
            self.ours().tags.create(name, self.ours().version)
        else:
            self.theirs().tags.create(name, self.theirs().version)
        self.tags[name] = self.kept()

    def branch(self) -> None:
        """A new branch, or a change of one."""
        if len(self.branches) < 2:
            name = f"branch{len(self.branches)}"
            self.ours().branches.create(name)
            self.branches[name] = self.kept()
            return
        name = self.random.choice(sorted(self.branches))
        rows, columns = self.branches[name]
        text, test = self.some()
        lance_sql.open(self.path, branch=name).delete(text)
        self.branches[name] = ({key: row for key, row in rows.items() if not test(row)}, columns)

    def kept(self) -> Kept:
        return {key: dict(row) for key, row in self.rows.items()}, list(self.columns)

    def forget_highest_fragment(self) -> None:
        """Old releases did not record it."""
        path = min((Path(self.path) / "_versions").glob("*.manifest"))  # names count down
        parsed, section, transaction = parse_manifest_file(path.read_bytes())
        changed = dataclasses.replace(parsed, max_fragment_id=None)
        path.write_bytes(serialize_manifest_file(changed, index_section=section, transaction=transaction))

    def kinds(self, count: int) -> list[Callable[[Model], None]]:
        """Operations of few kinds, which meet more often than all of them do."""
        if self.random.random() < 0.4:
            kinds = [Model.append, Model.append, Model.optimize, Model.optimize, self.random.choice(COMMON)]
            return self.random.choices(kinds, k=count)
        kinds = [one for one in OPERATION_WEIGHTS if one is Model.append or self.random.random() < 0.4]
        return self.random.choices(kinds, [OPERATION_WEIGHTS[one] for one in kinds], k=count)

    def check(self) -> None:
        ours, theirs = self.ours(), self.theirs()
        columns = ["id", *self.columns]
        assert theirs.schema.names == ours.schema.names
        assert set(ours.schema.names) == set(columns)
        for found in (ours.scan([*columns, "_rowid"]), theirs.scanner(columns=[*columns, "_rowid"])):
            rows = found.to_table().to_pylist()
            row_ids = [row.pop("_rowid") for row in rows]
            assert len(set(row_ids)) == len(row_ids)
            assert {row["id"]: row for row in rows} == self.rows
            assert len(rows) == len(self.rows)
        assert ours.count_rows() == theirs.count_rows() == len(self.rows)
        text, test = self.some()
        conditions: list[tuple[str, Callable[[Row], bool]]] = [
            (f"x = 3 OR ({text})", lambda row: row["x"] == 3 or test(row)),
            ("x IS NULL", lambda row: row["x"] is None),
            ("s = 'a'", lambda row: row["s"] == "a"),
            ("s IS NULL", lambda row: row["s"] is None),
            ("x > 2 AND s IN ('a', 'c')", lambda row: (row["x"] or 0) > 2 and row["s"] in ("a", "c")),
        ]
        for condition, wanted in self.random.sample(conditions, 2):
            expected = sorted(key for key, row in self.rows.items() if wanted(row))
            assert sorted(theirs.to_table(["id"], condition)["id"].to_pylist()) == expected, condition
            assert sorted(ours.to_table(["id"], condition)["id"].to_pylist()) == expected, condition
        theirs.validate()
        problems = ours.verify().to_pylist()
        assert problems == []
        self.history[ours.version] = self.kept()
        self.check_others()

    def check_others(self) -> None:
        """Another version, a tag or a branch."""
        places: list[tuple[dict[str, Any], Kept]] = [
            *(({"version": version}, kept) for version, kept in self.history.items()),
            *(({"tag": tag}, kept) for tag, kept in self.tags.items()),
            *(({"branch": branch}, kept) for branch, kept in self.branches.items()),
        ]
        place, (rows, columns) = self.random.choice(places)
        found = lance_sql.open(self.path, **place).scan(["id", *columns]).to_table().to_pylist()
        assert {row["id"]: row for row in found} == rows, place


OPERATION_WEIGHTS = {
    Model.append: 5,
    Model.delete: 5,
    Model.update: 5,
    Model.merge: 4,
    Model.delete_by_row_id: 2,
    Model.merge_by_clauses: 3,
    Model.replace_column: 2,
    Model.alter_type: 1,
    Model.add_column: 2,
    Model.drop_column: 1,
    Model.rename_column: 1,
    Model.compact: 2,
    Model.index: 1,
    Model.optimize: 4,
    Model.restore: 1,
    Model.clean_up: 1,
    Model.configure: 1,
    Model.transaction: 3,
    Model.tag: 1,
    Model.branch: 1,
}

#: Operations that indices must follow.
COMMON = [Model.delete, Model.update, Model.merge, Model.compact, Model.index, Model.transaction]


def take_turns(
    path: str,
    version: str,
    stable: bool,
    seed: int,
    operations: int,
    *,
    as_old: bool = False,
    every: int = 1,
) -> None:
    """Create a dataset, and change it so often; AssertionError if it is wrong after some step.

    Each step, or one of `every`, is checked.
    """
    model = Model(path, seed)
    table = model.new_rows(60)
    lance.write_dataset(
        table,
        model.path,
        data_storage_version=version,
        max_rows_per_file=25,
        enable_stable_row_ids=stable,
    )
    model.created = True
    model.rows = {row["id"]: row for row in table.to_pylist()}
    for column in ("x", "s"):
        if model.random.random() < 0.7:
            kind = model.random.choice(["BTREE", "BITMAP", "BITMAP", "ZONEMAP"])
            model.theirs().create_scalar_index(column, kind)
    if as_old:
        model.forget_highest_fragment()
    if every == 1:
        model.check()
    for number, operation in enumerate(model.kinds(operations)):
        try:
            operation(model)
            # What is wrong stays so; each step is checked where a finding is looked for.
            if number % every == every - 1 or number == operations - 1:
                model.check()
        except BaseException as error:
            error.add_note(f"operation {number} of seed {seed}: {operation.__name__}")
            raise


def turns_of(folder: Path, seed: int, every: int = 1) -> None:
    """Turns on a dataset, as many as the seed says: short sequences are many, and some are long."""
    chance = random.Random(seed)
    operations = 30 if chance.random() < 0.05 else chance.randint(5, 10)
    as_old = chance.random() < 0.3
    version = chance.choice(["2.0"] if as_old else ["2.0", "2.1", "2.1", "2.2"])
    stable = not as_old and chance.random() < 0.5
    take_turns(str(folder / "t.lance"), version, stable, seed, operations, as_old=as_old, every=every)
