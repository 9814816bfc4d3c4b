"""``CALL catalog.system.NAME(...)``: maintenance of tables. LanceProcedure.java declares the arguments.

Statements such as ``OPTIMIZE t`` are calls of procedures too: LanceStatements.java lists them.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from lance_engine.errors import InvalidArgumentError
from lance_engine.operations import TARGET_ROWS, add_key
from lance_engine.table import timespan

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.spark.index_procedures import create_index, drop_index, optimize_index, show_indexes
from lance_sql.spark.procedure_results import Listing, Row
from lance_sql.spark.ref_procedures import create_branch, drop_branch, show_branches, show_tags, tag, untag
from lance_sql.statements.options import StatementOptions, compaction_arguments, optimized, refuse_old_tags

_TYPES: Final = {bool: "BOOLEAN", int: "BIGINT", str: "STRING", type(None): "STRING"}
_NAME_PART: Final = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^`.]+)")
_COLUMN: Final = re.compile(r"(?:`(?:[^`]|``)+`|[^`,])+")


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


def column_names(text: str) -> list[str]:
    """The names in ``a, `b` ``."""
    return [".".join(table_name(column.strip(), "")) for column in _COLUMN.findall(text)]


def call(dataset: SqlDataset, procedure: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run a procedure; the result has columns and rows."""
    result = _PROCEDURES[procedure](dataset, **arguments)
    if isinstance(result, Listing):
        columns, rows = result.columns, result.rows
    else:
        columns = {name: _TYPES[type(value)] for name, value in result.items()}
        rows = [list(result.values())]
    return {"columns": [{"name": name, "type": kind} for name, kind in columns.items()], "rows": rows}


def _optimize(
    dataset: SqlDataset, target_rows: int = TARGET_ROWS, options: Mapping[str, str] | None = None
) -> Row:
    if target_rows < 1:
        raise InvalidArgumentError(f"target_rows cannot be {target_rows}", remedy="It must be at least 1")
    read = StatementOptions("OPTIMIZE t", options or {})
    arguments = {"target_rows": target_rows, **compaction_arguments(read)}
    read.finish()
    changed, counts = optimized(dataset, arguments)
    before, after = dataset.snapshot.fragments, changed.snapshot.fragments
    kept = {fragment.id for fragment in before} & {fragment.id for fragment in after}
    removed = [fragment for fragment in before if fragment.id not in kept]
    added = [fragment for fragment in after if fragment.id not in kept]
    return {
        **counts,
        "fragments_removed": len(removed),
        "fragments_added": len(added),
        "files_removed": sum(len(fragment.files) for fragment in removed),
        "files_added": sum(len(fragment.files) for fragment in added),
    }


def _vacuum(
    dataset: SqlDataset,
    retain_hours: int,
    dry_run: bool,
    delete_unverified: bool,
    options: Mapping[str, str] | None = None,
) -> Row:
    if retain_hours < 0:
        raise InvalidArgumentError(f"retain_hours cannot be {retain_hours}", remedy="It must be at least 0")
    read = StatementOptions("VACUUM t", options or {})
    before, moment = read.number("before_version", least=1), read.number("before_timestamp_millis")
    delete_unverified = bool(read.flag("delete_unverified")) or delete_unverified
    refuses_tags = read.flag("error_if_tagged_old_versions")
    read.finish()
    now = datetime.datetime.now(datetime.UTC)
    kept, retained = timespan(hours=retain_hours), 1
    if moment is not None:
        kept = timespan(milliseconds=max(0, int(now.timestamp() * 1000) - moment))
    if before is not None:
        later = [row for row in dataset.inspect.versions().to_pylist() if row["version"] >= before]
        oldest = min((row["committed_at"] for row in later), default=now)
        kept = now - oldest if moment is None else max(kept, now - oldest)
        retained = max(1, len(later))
    if refuses_tags:
        refuse_old_tags(dataset, kept)
    kept = max(kept, datetime.timedelta())
    report = dataset.cleanup(
        kept, retain_versions=retained, dry_run=dry_run, delete_unverified=delete_unverified
    )
    counts = dataclasses.asdict(report)
    return {
        "versions": len(report.versions),
        **{name: count for name, count in counts.items() if isinstance(count, int)},
        "damaged_references": len(report.damaged_references),
        "old_versions": len(report.versions),
    }


def _restore(dataset: SqlDataset, version: str) -> Row:
    chosen = int(version) if version.isdecimal() else dataset.tags.get(version).version
    return {"restored": chosen, "version": dataset.restore(chosen).version}


def _set_primary_key(dataset: SqlDataset, columns: str) -> Row:
    names = column_names(columns)
    add_key(dataset.snapshot, names, is_primary=True, is_enforced=False)
    return {"status": "OK", "primary_key_columns": ",".join(names)}


_PROCEDURES: Final[Mapping[str, Callable[..., Row | Listing]]] = {
    "optimize": _optimize,
    "vacuum": _vacuum,
    "create_index": create_index,
    "drop_index": drop_index,
    "optimize_index": optimize_index,
    "show_indexes": show_indexes,
    "tag": tag,
    "untag": untag,
    "show_tags": show_tags,
    "create_branch": create_branch,
    "drop_branch": drop_branch,
    "show_branches": show_branches,
    "restore": _restore,
    "set_unenforced_primary_key": _set_primary_key,
}
