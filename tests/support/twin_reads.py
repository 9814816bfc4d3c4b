"""Ways of reading one table by us and by pylance that must give equal rows, in equal order."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

import lance
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from random_tables import Column, Kind

import lance_sql

Read = tuple[Callable[[], Any], Callable[[], Any]]
#: Groups of types whose values pyarrow compares.
_COMPARED: Final = ("number", "float", "text", "boolean", "date", "moment", "decimal", "binary")


def reads(
    chosen: random.Random,
    ours: lance_sql.Dataset,
    theirs: lance.LanceDataset,
    columns: list[Column],
    where: str,
) -> dict[str, Read]:
    """Reads of the same version, ours and pylance's, by what they are."""
    names = [one.name for one in columns if chosen.random() < 0.5] or [columns[0].name]
    chosen.shuffle(names)
    limit, offset, batch = (
        chosen.choice([None, 0, 1, 7]),
        chosen.choice([None, 0, 2, 100]),
        chosen.choice([1, 3, 50]),
    )
    count = theirs.count_rows()
    places = [chosen.randrange(count) for _ in range(chosen.choice([1, 3, 20]))] if count else []
    expression, shown = _expression(chosen, columns)
    version = chosen.choice([one["version"] for one in theirs.versions()])
    metadata = ["_rowid", "_rowaddr"]
    return {
        f"to_table({names}, {where!r})": (
            lambda: ours.to_table(names, where),
            lambda: theirs.to_table(names, where),
        ),
        f"scan({names}, limit={limit}, offset={offset})": (
            lambda: ours.scan(names, limit=limit, offset=offset).to_table(),
            lambda: theirs.to_table(names, limit=limit, offset=offset),
        ),
        f"scan({names}, {where!r}, limit={limit}, offset={offset}, batch_size={batch})": (
            lambda: ours.scan(names, where, limit=limit, offset=offset, batch_size=batch).to_table(),
            lambda: theirs.to_table(names, where, limit=limit, offset=offset, batch_size=batch),
        ),
        f"row ids and addresses where {where!r}": (
            lambda: ours.to_table(metadata, where),
            lambda: theirs.to_table([], where, with_row_id=True, with_row_address=True),
        ),
        f"to_batches({names}, {where!r}, batch_size={batch})": (
            lambda: _joined(ours.to_batches(names, where, batch_size=batch)),
            lambda: theirs.to_table(names, where),
        ),
        f"to_table({names}, {shown})": (
            lambda: ours.to_table(names, expression),
            lambda: theirs.to_table(names, expression),
        ),
        f"to_arrow_dataset().to_table({names}, {shown})": (
            lambda: ours.to_arrow_dataset().to_table(names, filter=expression),
            lambda: theirs.to_table(names, expression),
        ),
        f"to_arrow_dataset().count_rows({shown})": (
            lambda: ours.to_arrow_dataset().count_rows(filter=expression),
            lambda: theirs.count_rows(expression),
        ),
        f"to_arrow_dataset().take({places})": (
            lambda: ours.to_arrow_dataset().take(places, columns=names),
            lambda: theirs.take(places, names),
        ),
        f"scan_polars().select({names})": (
            lambda: _from_polars(lance_sql.scan_polars(ours), names),
            lambda: pl.DataFrame(theirs.to_table(names)).to_arrow(),
        ),
        f"count_rows({where!r})": (lambda: ours.count_rows(where), lambda: theirs.count_rows(where)),
        f"head({limit or 5}, {names})": (
            lambda: ours.head(limit or 5, names),
            lambda: theirs.head(limit or 5, columns=names),
        ),
        f"take({places})": (lambda: ours.take_positions(places, names), lambda: theirs.take(places, names)),
        f"take the row ids of {places}": (
            lambda: ours.take(ours.take_positions(places, ["_rowid"])["_rowid"], names),
            lambda: theirs.take(places, names),
        ),
        f"version {version}": (
            lambda: lance_sql.open(ours.uri, version).to_table(),
            lambda: theirs.checkout_version((ours.branch, version)).to_table(),
        ),
        "tags": (
            lambda: sorted((tag.name, tag.version) for tag in ours.tags.list()),
            lambda: sorted((name, tag["version"]) for name, tag in theirs.tags.list().items()),
        ),
    }


def _joined(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def _from_polars(frame: Any, names: list[str]) -> pa.Table:
    return frame.select(names).collect().to_arrow()


def _expression(chosen: random.Random, columns: list[Column]) -> tuple[pc.Expression, str]:
    """A condition as pyarrow writes it."""

    def one() -> pc.Expression:
        column = chosen.choice(columns)
        field = pc.field(column.name)
        values = [_value(chosen, column.kind) for _ in range(2)]
        if column.kind.group not in _COMPARED or None in values or chosen.random() < 0.2:
            return field.is_null() if chosen.random() < 0.5 else field.is_valid()
        if chosen.random() < 0.2:
            return field.isin(pa.array([value.as_py() for value in values], column.kind.arrow))
        compare = chosen.choice(
            [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
        )
        return compare(field, values[0])

    condition = one()
    if chosen.random() < 0.4:
        condition = condition & one() if chosen.random() < 0.5 else condition | one()
    if chosen.random() < 0.2:
        condition = ~condition
    return condition, str(condition)


def _value(chosen: random.Random, kind: Kind) -> pa.Scalar | None:
    value = kind.make(chosen)
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return None
    return pa.scalar(value, kind.arrow)
