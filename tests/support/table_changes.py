"""Changes of a table with the columns `id`, `t` and maybe more, and the rows that each must leave."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import lance_sql

Rows = list[dict[str, Any]]
Change = Callable[[str, Rows], Rows]


def new_rows(uri: str, ids: range) -> pa.Table:
    """Rows for the table: every other column has some value, but for nulls, which 0.1 does not store."""
    names, fields = [], lance_sql.open(uri).schema
    columns = []
    for field in fields:
        names.append(field.name)
        columns.append(pa.array([_value(field, number) for number in ids], field.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _value(field: pa.Field, number: int) -> Any:
    kind = field.type
    if field.name == "id":
        return number
    if pa.types.is_struct(kind):
        return {inner.name: _value(inner, number) for inner in kind}
    if pa.types.is_fixed_size_list(kind):
        return [float(number % 11)] * kind.list_size
    if pa.types.is_list(kind):
        return [number]
    if pa.types.is_floating(kind):
        return number / 4
    return number if pa.types.is_integer(kind) else f"v{number % 5}"


def append(uri: str, rows: Rows) -> Rows:
    added = new_rows(uri, range(1000, 1012))
    lance_sql.write(added, uri, mode="append")
    return [*rows, *added.to_pylist()]


def delete(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).delete("id % 3 = 0")
    return [row for row in rows if row["id"] % 3]


def delete_all_and_append(uri: str, rows: Rows) -> Rows:
    added = new_rows(uri, range(1000, 1012))
    lance_sql.write(added, uri, mode="append")
    lance_sql.open(uri).delete("id < 1000")
    return added.to_pylist()


def truncate_and_append(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).truncate()
    return append(uri, [])


def update(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).update({"t": "'changed'"}, where="id < 15")
    return [{**row, "t": "changed"} if row["id"] < 15 else row for row in rows]


def merge(uri: str, rows: Rows) -> Rows:
    source = pa.concat_tables([new_rows(uri, range(5, 9)), new_rows(uri, range(2000, 2003))])
    builder = lance_sql.open(uri).merge(source, "id")
    builder.when_matched_update_all().when_not_matched_insert_all().execute()
    merged = {row["id"]: row for row in source.to_pylist()}
    return [merged.pop(row["id"], row) for row in rows] + list(merged.values())


def compact(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).compact()
    return rows


def delete_compact_optimize(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).delete("id % 3 = 0").compact().optimize_indices()
    return [row for row in rows if row["id"] % 3]


def append_optimize_compact(uri: str, rows: Rows) -> Rows:
    left = append(uri, rows)
    lance_sql.open(uri).optimize_indices().compact()
    return left


def add_column(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).add_columns({"z": "id + 1"})
    return [{**row, "z": row["id"] + 1} for row in rows]


def add_column_of_nulls(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).add_columns(pa.schema([("z", pa.int32())]))
    return [{**row, "z": None} for row in rows]


def drop_column(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).drop_columns(["l"])
    return [{name: value for name, value in row.items() if name != "l"} for row in rows]


def rename_column(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).rename_column("l", "renamed")
    return [{"renamed" if name == "l" else name: value for name, value in row.items()} for row in rows]


def alter_column(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).alter_column("t", type=pa.large_string())
    return rows


def replace_column(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).replace_columns({"t": "concat('r', cast(id as string))"})
    return [{**row, "t": f"r{row['id']}"} for row in rows]


def create_indices(uri: str, rows: Rows) -> Rows:
    dataset = lance_sql.open(uri)
    for column, kind in (("id", "btree"), ("t", "bitmap"), ("t", "inverted")):
        dataset = dataset.create_index(column, kind=kind, name=f"own_{kind}")
    return rows


def create_vector_index(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).create_index("v", kind="ivf_pq", name="own_vectors")
    return rows


def optimize(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).optimize_indices()
    return rows


def restore(uri: str, rows: Rows) -> Rows:
    first = lance_sql.open(uri, version=1).scan().to_table().to_pylist()
    lance_sql.open(uri).restore(1)
    return first


def overwrite(uri: str, rows: Rows) -> Rows:
    table = new_rows(uri, range(7))
    lance_sql.write(table, uri, mode="overwrite")
    return table.to_pylist()


def set_config(uri: str, rows: Rows) -> Rows:
    lance_sql.open(uri).update_config({"a": "b"})
    return rows


def tag_delete_clean_up(uri: str, rows: Rows) -> Rows:
    dataset = lance_sql.open(uri)
    dataset.tags.create("kept", dataset.version)
    dataset.delete("id = 2").cleanup(datetime.timedelta(0))
    assert lance_sql.open(uri, version=dataset.version).count_rows() == len(rows)
    return [row for row in rows if row["id"] != 2]


def branch_and_delete(uri: str, rows: Rows) -> Rows:
    dataset = lance_sql.open(uri)
    dataset.branches.create("side")
    lance_sql.open(uri, branch="side").delete("id = 2")
    dataset.delete("id = 3")
    left = [row["id"] for row in rows if row["id"] != 2]
    assert sorted(lance_sql.open(uri, branch="side").scan(["id"]).to_table()["id"].to_pylist()) == sorted(
        left
    )
    return [row for row in rows if row["id"] != 3]


CHANGES: list[Change] = [
    *(append, delete, delete_all_and_append, truncate_and_append, update, merge, compact),
    *(delete_compact_optimize, append_optimize_compact, add_column, add_column_of_nulls, drop_column),
    *(rename_column, alter_column, replace_column, create_indices, create_vector_index, optimize, restore),
    *(overwrite, set_config, tag_delete_clean_up, branch_and_delete),
]
#: Changes that a refusal may stop between two steps.
SEVERAL_STEPS = (truncate_and_append, delete_compact_optimize, tag_delete_clean_up)


def by_id(rows: Rows) -> Rows:
    """Rows to compare: changes may move them, and columns have no order here."""
    return sorted(({name: row[name] for name in sorted(row)} for row in rows), key=lambda row: row["id"])
