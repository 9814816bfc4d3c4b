"""``CALL catalog.system.NAME(...)``: maintenance of tables. LanceProcedure.java declares the arguments."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from lance_engine.errors import InvalidArgumentError
from lance_engine.operations import TARGET_ROWS

from lance_sql.catalog.dataset import SqlDataset

#: One row of a result; Python types are converted to those of Spark.
Row = Mapping[str, int | str | bool | None]

_TYPES: Final = {bool: "BOOLEAN", int: "BIGINT", str: "STRING", type(None): "STRING"}
_NAME_PART: Final = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^`.]+)")


def table_name(text: str, catalog: str) -> list[str]:
    """The parts of a table name, with or without the name of the catalog."""
    parts, place = [], 0
    while match := _NAME_PART.match(text, place):
        quoted = match["quoted"]
        parts.append(quoted.replace("``", "`") if quoted else match["plain"].strip())
        place = match.end()
        if place == len(text):
            return parts[1:] if len(parts) > 1 and parts[0] == catalog else parts
        if text[place] != ".":
            break
        place += 1
    raise InvalidArgumentError(
        f"{text!r} is not the name of a table", remedy="Write it as in a query: 'db.t' or 'db.`my table`'"
    )


def call(dataset: SqlDataset, procedure: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run a procedure; the result has columns and one row."""
    row = _PROCEDURES[procedure](dataset, **arguments)
    columns = [{"name": name, "type": _TYPES[type(value)]} for name, value in row.items()]
    return {"columns": columns, "rows": [list(row.values())]}


def _optimize(dataset: SqlDataset, target_rows: int = TARGET_ROWS) -> Row:
    if target_rows < 1:
        raise InvalidArgumentError(f"target_rows cannot be {target_rows}", remedy="It must be at least 1")
    before = len(dataset.snapshot.fragments)
    # Fragments covered by an index are not merged with others; and some index kinds cannot follow moved rows.
    changed = dataset.optimize_indices().compact(target_rows=target_rows).optimize_indices()
    return {
        "fragments_before": before,
        "fragments_after": len(changed.snapshot.fragments),
        "version": changed.version,
    }


def _vacuum(dataset: SqlDataset, retain_hours: int, dry_run: bool, delete_unverified: bool) -> Row:
    if retain_hours < 0:
        raise InvalidArgumentError(f"retain_hours cannot be {retain_hours}", remedy="It must be at least 0")
    kept = datetime.timedelta(hours=retain_hours)
    report = dataset.cleanup(kept, dry_run=dry_run, delete_unverified=delete_unverified)
    counts = dataclasses.asdict(report)
    return {
        "versions": len(report.versions),
        **{name: count for name, count in counts.items() if isinstance(count, int)},
        "damaged_references": len(report.damaged_references),
    }


def _create_index(
    dataset: SqlDataset,
    column: str,
    kind: str,
    replace: bool,
    name: str | None = None,
    options: Mapping[str, str | None] | None = None,
) -> Row:
    values: dict[str, Any] = {
        key: _constant(text) for key, text in (options or {}).items() if text is not None
    }
    try:
        changed = dataset.create_index(column, kind, name=name, replace=replace, **values)
    except TypeError as error:  # an option that this kind does not have
        raise InvalidArgumentError(str(error), path=dataset.uri) from error
    return {"index": name or f"{column}_idx", "version": changed.version}


def _constant(text: str) -> int | float | bool | str:
    """An option of an index; Spark passes all of them as text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _drop_index(dataset: SqlDataset, name: str) -> Row:
    return {"index": name, "version": dataset.drop_index(name).version}


def _tag(dataset: SqlDataset, name: str, replace: bool, version: int | None = None) -> Row:
    tags = dataset.tags
    chosen = dataset.version if version is None else version
    if replace and any(tag.name == name for tag in tags.list()):
        tags.update(name, chosen)
    else:
        tags.create(name, chosen)
    return {"tag": name, "version": chosen}


def _untag(dataset: SqlDataset, name: str) -> Row:
    dataset.tags.delete(name)
    return {"tag": name}


def _restore(dataset: SqlDataset, version: str) -> Row:
    chosen = int(version) if version.isdecimal() else dataset.tags.get(version).version
    return {"restored": chosen, "version": dataset.restore(chosen).version}


_PROCEDURES: Final[Mapping[str, Callable[..., Row]]] = {
    "optimize": _optimize,
    "vacuum": _vacuum,
    "create_index": _create_index,
    "drop_index": _drop_index,
    "tag": _tag,
    "untag": _untag,
    "restore": _restore,
}
