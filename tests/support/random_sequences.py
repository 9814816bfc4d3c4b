"""Random sequences of operations by pylance, of any release, on datasets with nested columns.

``python random_sequences.py FOLDER FIRST COUNT`` writes the datasets of some seeds; nothing but pylance and
pyarrow is imported, so that old releases can run it. Operations that a release does not support are removed
from the sequence.
"""

from __future__ import annotations

import datetime
import decimal
import random
import sys
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

LEAVES = [
    pa.int64(),
    pa.int32(),
    pa.float64(),
    pa.string(),
    pa.bool_(),
    pa.list_(pa.int32()),
    pa.date32(),
] * 3
LEAVES += [pa.float32(), pa.uint8(), pa.large_string(), pa.binary(), pa.timestamp("us"), pa.decimal128(9, 2)]
LEAVES += [pa.list_(pa.float32(), 2), pa.list_(pa.string()), pa.list_(pa.list_(pa.int32()))]
DAY = datetime.datetime(2024, 1, 1)
MAJOR = int(lance.__version__.split(".")[0])
#: What the release at hand writes: the newest version most often.
VERSIONS = ["legacy", "2.0", "2.0"] if MAJOR < 1 else ["legacy", "2.0", "2.0", "2.1", "2.1"]
VERSIONS += ["2.2"] * 6 if MAJOR >= 8 else []
CASTS = {pa.int32(): pa.int64(), pa.string(): pa.large_string(), pa.float32(): pa.float64()}
BLOB = {"lance-encoding:blob": "true"}
# Some fields cannot be written by some releases: others are tried.
ATTEMPTS = 10


class Sequence:
    """One dataset and what happens to it, as the seed says."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.uri = str(folder / f"{seed}.lance")
        self.next_id = 0
        self.names = iter(f"c{number}" for number in range(1000))
        self.version = self.random.choice(VERSIONS)
        self.failures: list[str] = []
        self.bases: list[str] = []
        #: structs of versions before 2.1 cannot be null
        self.null_share = 0.0 if self.version in ("legacy", "2.0") else 0.2

    def run(self) -> None:
        """Create the dataset and change it a few times."""
        self.create()
        for _ in range(self.random.randint(2, 7)):
            self.step()

    def create(self) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self.write_new()
                return
            except BaseException as error:
                if isinstance(error, (KeyboardInterrupt, SystemExit)) or attempt == ATTEMPTS - 1:
                    raise
                self.failures.append(f"create: {str(error)[:200]}")

    def write_new(self) -> None:
        fields = [pa.field("id", pa.int64())]
        fields += [pa.field(next(self.names), self.type(2)) for _ in range(self.random.randint(1, 3))]
        fields.append(pa.field("s", self.struct(2)))
        if self.random.random() < 0.5:
            fields.append(pa.field("l", pa.list_(pa.field("item", self.struct(1)))))
        if self.random.random() < 0.2 and hasattr(pa, "json_"):
            fields.append(pa.field("j", pa.json_()))
        if self.random.random() < 0.2 and self.version != "legacy":
            new = self.version == "2.2" and hasattr(lance, "blob_field")
            fields.append(lance.blob_field("b") if new else pa.field("b", pa.large_binary(), metadata=BLOB))
        self.next_id = 0
        table = self.table(pa.schema(fields), self.random.randint(1, 12))
        options: dict[str, Any] = {"data_storage_version": self.version, "mode": "overwrite"}
        if self.random.random() < 0.5:
            options["max_rows_per_file"] = self.random.randint(2, 8)
        if hasattr(lance, "DatasetBasePath") and self.random.random() < 0.15:
            base = Path(f"{self.uri}-base")
            base.mkdir(exist_ok=True)
            is_root = self.random.random() < 0.5
            place = lance.DatasetBasePath(str(base), name="base", is_dataset_root=is_root)
            options["initial_bases"] = [place]
            options["target_bases"] = self.bases = ["base"]
        stable = self.random.random() < 0.4
        for names in (["enable_stable_row_ids"], ["enable_move_stable_row_ids"], []):
            try:
                lance.write_dataset(table, self.uri, **options, **dict.fromkeys(names, stable))
            except TypeError:
                continue
            return
        raise RuntimeError("nothing was written")

    def step(self) -> None:
        """One operation; operations that pylance refuses change nothing."""
        operation = self.random.choice(OPERATIONS)
        try:
            operation(self, lance.dataset(self.uri))
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            self.failures.append(f"{operation.__name__}: {str(error)[:200]}")

    # Types and values

    def type(self, depth: int) -> pa.DataType:
        if depth and self.random.random() < 0.3:
            return self.struct(depth - 1)
        if depth and self.random.random() < 0.15:
            return pa.list_(pa.field("item", self.struct(depth - 1)))
        return self.random.choice(LEAVES)

    def struct(self, depth: int) -> pa.DataType:
        count = self.random.randint(1, 3)
        return pa.struct([pa.field(next(self.names), self.type(depth)) for _ in range(count)])

    def value(self, kind: pa.DataType) -> Any:
        types, chance = pa.types, self.random.random
        if types.is_struct(kind):
            if chance() < self.null_share:
                return None
            return {field.name: self.value(field.type) for field in kind}
        if chance() < 0.2:
            return None
        if types.is_list(kind):
            return [self.value(kind.value_type) for _ in range(self.random.choice([0, 1, 2, 3]))]
        if types.is_fixed_size_list(kind):
            return [self.random.randint(-8, 8) / 4 for _ in range(kind.list_size)]
        if types.is_integer(kind):
            return self.random.randint(0 if types.is_unsigned_integer(kind) else -5, 20)
        if types.is_date(kind):
            return (DAY + datetime.timedelta(days=self.random.randint(-5, 20))).date()
        if types.is_timestamp(kind):
            return DAY + datetime.timedelta(hours=self.random.randint(-5, 20))
        if types.is_floating(kind):
            return self.random.choice([float("nan"), -0.0, *(step / 4 for step in range(-8, 9))])
        if types.is_decimal(kind):
            return decimal.Decimal(self.random.randint(-8, 8)) / 4
        if types.is_boolean(kind):
            return chance() < 0.5
        if types.is_binary(kind) or types.is_large_binary(kind):
            return self.random.choice([b"", b"a", b"\xff\x00", b"abc"])
        if isinstance(kind, pa.BaseExtensionType):
            return self.random.choice(['{"a":1}', '{"a":[1,2],"b":"x"}', "null", "7"])
        return self.random.choice(["", "a", "b", "abc", "é"])

    def table(self, schema: pa.Schema, rows: int, ids: list[int] | None = None) -> pa.Table:
        """Rows with ids of their own, unless these are given."""
        if ids is None:
            ids = list(range(self.next_id, self.next_id + rows))
            self.next_id += rows
        columns = []
        for field in schema:
            values = ids if field.name == "id" else [self.value(field.type) for _ in ids]
            columns.append(self.array(values, field.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def array(self, values: list[Any], kind: pa.DataType) -> pa.Array:
        if not isinstance(kind, pa.BaseExtensionType):
            return pa.array(values, kind)
        if kind.extension_name == "lance.blob.v2":
            sizes = [0, 3, 3, 70_000] if self.random.random() < 0.1 else [0, 3]
            return lance.blob_array([value and b"x" * self.random.choice(sizes) for value in values])
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))

    def part(self, schema: pa.Schema, *, shuffled: bool = True) -> pa.Schema:
        """Some of the columns and fields, in another order; always with the id."""
        fields = [
            self.part_of(field) for field in schema if field.name != "id" and self.random.random() < 0.8
        ]
        fields.append(schema.field("id"))
        if shuffled:
            self.random.shuffle(fields)
        return pa.schema(fields)

    def part_of(self, field: pa.Field) -> pa.Field:
        kind = field.type
        if pa.types.is_struct(kind):
            kept = [self.part_of(child) for child in kind if self.random.random() < 0.7]
            kept = kept or [self.part_of(kind.field(0))]
            self.random.shuffle(kept)
            return field.with_type(pa.struct(kept))
        if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            return field.with_type(pa.list_(self.part_of(kind.value_field)))
        return field

    def path(self, schema: pa.Schema, *, leaf: bool = False) -> tuple[str, pa.Field]:
        """The path of some field."""
        field = self.random.choice([field for field in schema if field.name != "id"])
        path = field.name
        while True:
            kind = field.type
            if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
                field = kind.value_field
            elif pa.types.is_struct(kind) and kind.num_fields and (leaf or self.random.random() < 0.7):
                field = kind.field(self.random.randrange(kind.num_fields))
            else:
                return path, field
            path += f".{field.name}"

    # Operations

    def append(self, dataset: Any) -> None:
        schema = self.part(dataset.schema) if self.random.random() < 0.7 else dataset.schema
        elsewhere = self.bases and self.random.random() < 0.5
        options = {"target_bases": self.bases} if elsewhere else {}
        table = self.table(schema, self.random.randint(1, 6))
        lance.write_dataset(table, self.uri, mode="append", **options)

    def add_nested(self, dataset: Any) -> None:
        tops = [field for field in dataset.schema if pa.types.is_struct(field.type)]
        tops += [field for field in dataset.schema if _is_list_of_structs(field.type)]
        dataset.add_columns(pa.schema([self.widened(self.random.choice(tops))]))

    def add_nested_values(self, dataset: Any) -> None:
        tops = [field for field in dataset.schema if pa.types.is_struct(field.type)]
        schema = pa.schema([self.widened(self.random.choice(tops))])
        table = self.table(
            pa.schema([*schema, pa.field("id", pa.int64())]), 0, list(range(dataset.count_rows()))
        )
        dataset.add_columns(table.select(schema.names).to_reader())

    def widened(self, field: pa.Field) -> pa.Field:
        """A field that only contains a new one."""
        kind = field.type
        if _is_list_of_structs(kind):
            return field.with_type(pa.list_(self.widened(kind.value_field)))
        inner = [child for child in kind if pa.types.is_struct(child.type)]
        if inner and self.random.random() < 0.4:
            return field.with_type(pa.struct([self.widened(self.random.choice(inner))]))
        return field.with_type(pa.struct([pa.field(next(self.names), self.type(1))]))

    def add_column(self, dataset: Any) -> None:
        name = next(self.names)
        if self.random.random() < 0.5:
            dataset.add_columns({name: self.random.choice(["id * 2", "concat('v', id)", "id > 3"])})
        else:
            dataset.add_columns(pa.schema([pa.field(name, self.type(2))]))

    def drop(self, dataset: Any) -> None:
        dataset.drop_columns([self.path(dataset.schema)[0]])

    def rename(self, dataset: Any) -> None:
        dataset.alter_columns({"path": self.path(dataset.schema)[0], "name": next(self.names)})

    def cast(self, dataset: Any) -> None:
        for _ in range(5):
            path, field = self.path(dataset.schema, leaf=True)
            if field.type in CASTS:
                dataset.alter_columns({"path": path, "data_type": CASTS[field.type]})
                return

    def merge_insert(self, dataset: Any) -> None:
        schema = self.part(dataset.schema) if self.random.random() < 0.7 else dataset.schema
        known = dataset.to_table(columns=["id"])["id"].to_pylist()
        ids = self.random.sample(known, min(len(known), self.random.randint(0, 5)))
        ids += [self.next_id + number for number in range(self.random.randint(0, 2))]
        self.next_id += 2
        merge = dataset.merge_insert("id")
        if self.random.random() < 0.8:
            merge = merge.when_matched_update_all()
        if self.random.random() < 0.6:
            merge = merge.when_not_matched_insert_all()
        merge.execute(self.table(schema, 0, ids))

    def merge(self, dataset: Any) -> None:
        kind = self.type(1)
        ids = dataset.to_table(columns=["id"])["id"].to_pylist()
        schema = pa.schema([("id", pa.int64()), (next(self.names), kind)])
        dataset.merge(self.table(schema, 0, self.random.sample(ids, len(ids) // 2 + 1)), "id")

    def delete(self, dataset: Any) -> None:
        dataset.delete(self.random.choice([f"id % {self.random.randint(2, 5)} = 0", "id < 3", "id = 5"]))

    def update(self, dataset: Any) -> None:
        leaves = [field for field in dataset.schema if field.type in (pa.int64(), pa.string())]
        values = {field.name: "7" if field.type == pa.int64() else "'new'" for field in leaves[1:3]}
        values = values or {"id": "id + 100"}
        dataset.update(values, where=f"id % {self.random.randint(2, 4)} = 1")

    def compact(self, dataset: Any) -> None:
        dataset.optimize.compact_files(target_rows_per_fragment=self.random.choice([4, 1000]))

    def index(self, dataset: Any) -> None:
        path, _ = self.path(dataset.schema, leaf=True)
        dataset.create_scalar_index(path, self.random.choice(["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"]))

    def optimize(self, dataset: Any) -> None:
        dataset.optimize.optimize_indices()

    def restore(self, dataset: Any) -> None:
        lance.dataset(self.uri, version=self.random.randint(1, dataset.version)).restore()

    def overwrite(self, dataset: Any) -> None:
        if self.random.random() < 0.3:
            schema = pa.schema([("id", pa.int64()), ("s", self.struct(2))])
            lance.write_dataset(self.table(schema, 4), self.uri, mode="overwrite")

    def clone(self, dataset: Any) -> None:
        """Continue with a clone, some of whose data files are elsewhere."""
        if hasattr(dataset, "shallow_clone") and self.random.random() < 0.5:
            target = self.uri.replace(".lance", "x.lance")
            dataset.shallow_clone(target, dataset.version)
            self.uri = target


def _is_list_of_structs(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)


OPERATIONS = [
    *[Sequence.append, Sequence.merge_insert] * 3,
    *[Sequence.add_nested, Sequence.add_nested_values, Sequence.drop, Sequence.rename, Sequence.cast] * 2,
    *(Sequence.add_column, Sequence.merge, Sequence.delete, Sequence.update, Sequence.compact),
    *(
        Sequence.index,
        Sequence.index,
        Sequence.optimize,
        Sequence.restore,
        Sequence.overwrite,
        Sequence.clone,
    ),
]


def write(folder: Path, first: int, count: int) -> None:
    """The datasets of some seeds."""
    for seed in range(first, first + count):
        try:
            Sequence(folder, seed).run()
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            print(f"{seed}: {str(error)[:200]}", file=sys.stderr)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
