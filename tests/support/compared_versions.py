"""Every version of a dataset as pylance reads it and as we do: rows, row ids, filters, lookups and counts.

Nothing that pylance cannot do hides what we do: where it cannot scan a version, its rows are looked up one by
one, and where it cannot filter, or says one thing with an index and another without, a copy is asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import lance
import pyarrow as pa

import lance_sql

_COMPARISONS = ["= 3", "> 2", "<= 5", "<> 7", "IS NULL", "IS NOT NULL", "IN (1, 2, 9)"]
_FLOAT_COMPARISONS = ["= 0.5", "> 0.25", "<= -1.0", "<> 0.0", "IS NULL", "IN (0.0, 1.25)"]
_TEXT_COMPARISONS = ["= 'a'", "> 'a'", "IS NULL", "IS NOT NULL", "IN ('b', 'abc', 'v3')", "LIKE 'a%'"]
_DATE_COMPARISONS = ["> date '2024-01-05'", "= date '2024-01-02'", "IS NULL"]
_TIME_COMPARISONS = ["> timestamp '2024-01-01 03:00:00'", "<= timestamp '2024-01-01'", "IS NOT NULL"]
_JSON_CONDITIONS = ["json_extract({}, '$.a') = '1'", "json_exists({}, '$.b')", "{} IS NULL"]
_LIST_CONDITIONS = ["array_has({}, 3)", "array_length({}) = 2", "{} IS NULL", "{} IS NOT NULL"]
_MANY_ROWS = 200
#: Conditions for the newest version.
_FILTERS = 5
_FAILED: Any = object()


def differences(uri: str, seed: int) -> list[str]:
    """What differs between both in any version."""
    found = []
    chance = random.Random(seed)
    newest = lance.dataset(uri).version
    for version in range(1, newest + 1):
        theirs = _try(lance.dataset, uri, version=version)
        if theirs is _FAILED:
            continue
        try:
            ours = lance_sql.open(uri, version=version)
            # The version before saw the same conditions, most often over the same columns.
            filters = _FILTERS if version == newest else 1
            found += [f"version {version}: {what}" for what in _version(theirs, ours, filters, chance)]
        except Exception as error:
            found.append(f"version {version}: {type(error).__name__}: {error}")
    return found


def _version(theirs: Any, ours: lance_sql.Dataset, filters: int, chance: random.Random) -> Iterator[str]:
    table = _try(_with_blobs, theirs.to_table, with_row_id=True)
    if table is _FAILED:
        yield from _lookups(theirs, ours)
        return
    names = table.schema.names
    expected, got = table.to_pylist(), ours.scan(columns=names).to_table().to_pylist()
    copied = False
    if _text(got) != _text(expected):
        # Rows of which pylance says one thing in a scan and another alone are as they are alone.
        for number, row in enumerate(expected):
            if number < len(got) and _text(got[number]) != _text(row):
                alone = _try(_alone, theirs, number)
                if alone is not _FAILED:
                    copied = copied or _text({**row, **alone}) != _text(row)
                    expected[number] = {**row, **alone}
        if copied:
            table = pa.Table.from_pylist(expected, schema=table.schema)
    if _text(got) != _text(expected):
        yield f"rows: {_first_difference(got, expected)}"
    if ours.count_rows() != len(expected):
        yield f"{ours.count_rows()} rows counted of {len(expected)}"
    wheres = _filters(table.schema, chance)
    yield from _filtered(theirs, ours, table, copied, chance.sample(wheres, min(filters, len(wheres))))
    if expected:
        some = [chance.choice(expected) for _ in range(5)]
        taken = ours.take([row["_rowid"] for row in some], columns=names[:-1]).to_pylist()
        wanted = [{name: row[name] for name in names[:-1]} for row in some]
        if _text(taken) != _text(wanted):
            yield f"taken: {_first_difference(taken, wanted)}"
    paths = [path for path, _ in _conditions(table.schema) if "." in path and "item" not in path]
    for path in chance.sample(paths, min(2, len(paths))):
        part = _try(theirs.to_table, columns=["id", path])
        mine = part if part is _FAILED else ours.scan(columns=["id", path]).to_table()
        if part is not _FAILED and not copied and _text(mine.to_pylist()) != _text(part.to_pylist()):
            yield f"column {path}: {_first_difference(mine.to_pylist(), part.to_pylist())}"


def _filtered(
    theirs: Any, ours: lance_sql.Dataset, table: pa.Table, copied: bool, filters: Sequence[str]
) -> Iterator[str]:
    # pylance 14 takes some nulls of version 0.1 for values in filters, but not in the rows.
    files = [file for fragment in theirs.get_fragments() for file in fragment.data_files()]
    copied = copied or any(_version_of(file) == "0.1" for file in files)
    is_indexed = _try(theirs.list_indices) != []
    for where in filters:
        rows = _FAILED
        if not copied:
            rows = _try(_rows, theirs, where)
            if is_indexed and rows != _try(_rows, theirs, where, use_scalar_index=False):
                rows = _FAILED
        if rows is _FAILED:
            rows = _try(_rows_of_copy, table, where)
        if rows is _FAILED:
            continue
        found = ours.scan(columns=["id", "_rowid"], filter=where).to_table().to_pylist()
        if found != rows:
            yield f"{where}: {_first_difference(found, rows)}"
        if ours.count_rows(where) != len(rows):
            yield f"{where}: counted {ours.count_rows(where)} of {len(rows)}"


def _lookups(theirs: Any, ours: lance_sql.Dataset) -> Iterator[str]:
    """Row by row, because pylance cannot scan the version."""
    rows = _try(theirs.to_table, columns=["id"], with_row_id=True)
    if rows is _FAILED or len(rows) > _MANY_ROWS:
        return
    for number, row in enumerate(rows.to_pylist()):
        alone = _try(_alone, theirs, number)
        if alone is _FAILED:
            continue
        taken = ours.take([row["_rowid"]], columns=list(alone)).to_pylist()
        if _text(taken) != _text([alone]):
            yield f"taken alone: {_first_difference(taken, [alone])}"


def _rows(dataset: Any, where: str, **options: Any) -> list[Any]:
    found: list[Any] = dataset.to_table(columns=["id"], filter=where, with_row_id=True, **options).to_pylist()
    return found


def _rows_of_copy(table: pa.Table, where: str) -> list[Any]:
    """The rows that a filter finds in a copy in the newest version."""
    plain = table.rename_columns([*table.schema.names[:-1], "old"])
    copy = lance.write_dataset(plain, f"memory://{random.random()}", data_storage_version="2.2")
    found = copy.to_table(columns=["id", "old"], filter=where).to_pylist()
    return [{"id": row["id"], "_rowid": row["old"]} for row in found]


def _alone(dataset: Any, number: int) -> dict[str, Any]:
    """The values of a row, but for blobs, which pylance does not read in look-ups."""
    names = [field.name for field in dataset.schema if not _is_blob(field)]
    row: dict[str, Any] = dataset.take([number], columns=names).to_pylist()[0]
    return row


def _with_blobs(read: Callable[..., pa.Table], **options: Any) -> pa.Table:
    """What pylance reads, with the bytes of blobs."""
    try:
        return read(blob_handling="all_binary", **options)
    except TypeError:
        return read(**options)


def _try(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of pylance, or its failure; its panics are not an `Exception`."""
    try:
        return call(*arguments, **options)
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return _FAILED


def _version_of(file: Any) -> str:
    legacy = (file.file_major_version, file.file_minor_version) in ((0, 0), (0, 1), (0, 2))
    return "0.1" if legacy else f"{file.file_major_version}.{file.file_minor_version}"


def _text(rows: Any) -> str:
    """Rows to compare: NaN is not equal to itself."""
    return repr(rows)


def _first_difference(got: list[Any], expected: list[Any]) -> str:
    for number, (mine, theirs) in enumerate(zip(got, expected, strict=False)):
        if _text(mine) != _text(theirs):
            return f"row {number} is {mine}, to pylance {theirs}"
    return f"{len(got)} rows, to pylance {len(expected)}"


def _filters(schema: pa.Schema, chance: random.Random) -> list[str]:
    conditions = list(_conditions(schema))
    chance.shuffle(conditions)
    found = [chance.choice(templates).format(path) for path, templates in conditions[:3]]
    return [*found, " OR ".join(found[:2]), f"NOT ({found[0]})"] if len(found) > 1 else found


def _conditions(schema: pa.Schema) -> Iterator[tuple[str, list[str]]]:
    for field in schema:
        if field.name != "_rowid" and not _is_blob(field):
            yield from _paths(field.name, field.type)


def _is_blob(field: pa.Field) -> bool:
    is_new = getattr(field.type, "extension_name", "") == "lance.blob.v2"
    return is_new or b"lance-encoding:blob" in (field.metadata or {})


def _paths(path: str, kind: pa.DataType) -> Iterator[tuple[str, list[str]]]:
    types = pa.types
    comparisons = ["IS NULL", "IS NOT NULL"]
    if types.is_struct(kind):
        for field in kind:
            yield from _paths(f"{path}.{field.name}", field.type)
    elif types.is_integer(kind):
        comparisons = _COMPARISONS
    elif types.is_floating(kind) or types.is_decimal(kind):
        comparisons = _FLOAT_COMPARISONS
    elif types.is_string(kind) or types.is_large_string(kind):
        comparisons = _TEXT_COMPARISONS
    elif types.is_date(kind):
        comparisons = _DATE_COMPARISONS
    elif types.is_timestamp(kind):
        comparisons = _TIME_COMPARISONS
    elif types.is_boolean(kind):
        comparisons = ["IS TRUE", "= false", "IS NOT TRUE", "IS NULL"]
    elif types.is_list(kind) and types.is_integer(kind.value_type):
        yield path, _LIST_CONDITIONS
        return
    elif isinstance(kind, pa.BaseExtensionType):
        yield path, _JSON_CONDITIONS
        return
    yield path, [f"{{}} {comparison}" for comparison in comparisons]
