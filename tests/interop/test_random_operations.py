"""Random operations by us and by pylance on one dataset, checked against a table in memory after each."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

import lance_sql

if TYPE_CHECKING:
    from conftest import ObjectStore

OPERATIONS, MANY_OPERATIONS = 25, 200
NO_TIME = datetime.timedelta(0)

Row = dict[str, Any]


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
        self.history: dict[int, tuple[dict[int, Row], list[str]]] = {}

    def ours(self) -> lance_sql.Dataset:
        return lance_sql.open(self.path)

    def theirs(self) -> lance.LanceDataset:
        return lance.dataset(self.path)

    def by_us(self) -> bool:
        return self.random.random() < 0.6

    def new_rows(self, count: int) -> pa.Table:
        rows = [self.row(self.next_id + i) for i in range(count)]
        self.next_id += count
        return self.table(rows)

    def row(self, number: int) -> Row:
        values = {name: self.random.choice([None, *range(5)]) for name in self.columns if name != "s"}
        row = {"id": number, **values}
        if "s" in self.columns:
            row["s"] = self.random.choice([None, "a", "b", "c"])
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
        if self.by_us():
            lance_sql.write(table, self.path, mode="append")
        else:
            lance.write_dataset(table, self.path, mode="append")
        self.rows |= {row["id"]: row for row in table.to_pylist()}

    def delete(self) -> None:
        text, test = self.some()
        self.ours().delete(text) if self.by_us() else self.theirs().delete(text)
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
            for index in self.ours().inspect.indices().to_pylist():
                if name in index["columns"]:
                    theirs.drop_index(index["name"])
            theirs.alter_columns({"path": name, "data_type": wanted})

    def update(self) -> None:
        text, test = self.some()
        name = self.random.choice([name for name in self.columns if name != "s"])
        if self.by_us():
            self.ours().update({name: "id * 2 + 1"}, text)
        else:
            self.theirs().update({name: "id * 2 + 1"}, text)
        for row in self.rows.values():
            if test(row):
                row[name] = row["id"] * 2 + 1

    def merge(self) -> None:
        known = self.random.sample(sorted(self.rows), min(len(self.rows), self.random.randrange(6)))
        source = self.table([self.row(number) for number in known])
        source = pa.concat_tables([source, self.new_rows(self.random.randrange(1, 4))])
        if self.by_us():
            ours = self.ours().merge(source, on="id")
            ours.when_matched_update_all().when_not_matched_insert_all().execute()
        else:
            theirs = self.theirs().merge_insert("id")
            theirs.when_matched_update_all().when_not_matched_insert_all().execute(source)
        self.rows |= {row["id"]: row for row in source.to_pylist()}

    def add_column(self) -> None:
        name = f"c{self.next_column}"
        self.next_column += 1
        if self.random.random() < 0.3:
            field = pa.field(name, pa.int64())
            self.ours().add_columns(field) if self.by_us() else self.theirs().add_columns(field)
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
        self.ours().drop_columns([name]) if self.by_us() else self.theirs().drop_columns([name])
        self.columns.remove(name)
        for row in self.rows.values():
            del row[name]

    def rename_column(self) -> None:
        old, new = self.random.choice(self.columns), f"r{self.next_column}"
        if old in ("x", "s"):
            return
        self.next_column += 1
        if self.by_us():
            self.ours().rename_column(old, new)
        else:
            self.theirs().alter_columns({"path": old, "name": new})
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
        kind = self.random.choice(["BTREE", "BITMAP", "ZONEMAP"])
        column = self.random.choice(["x", "id"])
        if self.by_us():
            self.ours().create_index(column, kind.lower(), replace=True)
        else:
            self.theirs().create_scalar_index(column, kind, replace=True)

    def optimize(self) -> None:
        if self.by_us():
            self.ours().optimize_indices()
        else:
            self.theirs().optimize.optimize_indices()

    def restore(self) -> None:
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
            self.theirs().cleanup_old_versions(NO_TIME)
        self.history = {}

    def configure(self) -> None:
        self.ours().update_config({"a": str(self.random.random())})

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
        expected = sorted(key for key, row in self.rows.items() if row["x"] == 3 or test(row))
        assert sorted(theirs.to_table(["id"], f"x = 3 OR ({text})")["id"].to_pylist()) == expected
        assert sorted(ours.to_table(["id"], f"x = 3 OR ({text})")["id"].to_pylist()) == expected
        theirs.validate()
        assert ours.verify().num_rows == 0
        self.history[ours.version] = ({key: dict(row) for key, row in self.rows.items()}, list(self.columns))


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
    Model.index: 2,
    Model.optimize: 1,
    Model.restore: 1,
    Model.clean_up: 1,
    Model.configure: 1,
}


@pytest.mark.parametrize(
    ("version", "stable", "seed"), [("2.1", False, 1), ("2.1", True, 2), ("2.0", False, 3), ("2.2", True, 4)]
)
def test_taking_turns(tmp_path: Path, version: str, stable: bool, seed: int) -> None:
    take_turns(str(tmp_path / "t.lance"), version, stable, seed, OPERATIONS)


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_taking_many_turns(tmp_path: Path, stable: bool, seed: int) -> None:
    take_turns(str(tmp_path / "t.lance"), "2.1", stable, seed, MANY_OPERATIONS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("kind", ["s3", "ddb"])
def test_taking_many_turns_on_an_object_store(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, kind: str, stable: bool
) -> None:
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    uri = getattr(object_store, kind)("t.lance")
    take_turns(uri, "2.1", stable, 14, MANY_OPERATIONS)


def take_turns(path: str, version: str, stable: bool, seed: int, operations: int) -> None:
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
    model.check()
    choices = model.random.choices([*OPERATION_WEIGHTS], [*OPERATION_WEIGHTS.values()], k=operations)
    for number, operation in enumerate(choices):
        try:
            operation(model)
            model.check()
        except BaseException as error:
            error.add_note(f"operation {number} of seed {seed}: {operation.__name__}")
            raise
