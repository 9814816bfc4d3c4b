"""``lance-sql history`` and ``lance-sql diff``: what versions changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from lance_engine.base import legible_line

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import json_option, open_dataset, storage_option

if TYPE_CHECKING:
    from lance_engine.table import Snapshot

#: Keys of a transaction that are shown, besides the version.
_CHANGES = ("fragments_added", "fragments_updated", "fragments_removed", "predicate")


@click.command("history")
@click.argument("path")
@click.option("--branch", help="Branch to read. Default: main.")
@storage_option
@json_option
@reports_errors
def history_command(path: str, as_json: bool, **which: Any) -> None:
    """List the versions of a dataset, newest first: when, by what operation, and what it changed.

    \b
    lance-sql history sales.lance
    """
    import pyarrow as pa

    from lance_sql.display.output import print_json, print_table

    dataset = open_dataset(path, **which)
    changes = {row["version"]: row for row in dataset.inspect.transactions().to_pylist()}
    named: dict[int, list[str]] = {}
    for ref in dataset.inspect.refs().to_pylist():
        if ref["branch"] == dataset.branch and ref["kind"] == "tag":
            named.setdefault(ref["version"], []).append(ref["name"])
    rows = []
    for version in reversed(dataset.inspect.versions().to_pylist()):
        number = version["version"]
        change = changes.get(number, {})
        rows.append(
            {
                "version": number,
                "committed_at": version["committed_at"],
                "operation": version["operation"],
                "rows": version["rows"],
                "fragments": version["fragments"],
                **{key: change.get(key) for key in _CHANGES},
                "tags": named.get(number, []),
                "writer": version["writer"],
                "message": version["message"],
            }
        )
    if as_json:
        print_json(rows)
        return
    shown = [
        {
            "version": row["version"],
            "committed": row["committed_at"].replace(microsecond=0, tzinfo=None),
            "operation": row["operation"],
            "rows": row["rows"],
            "fragments": f"{row['fragments']:,}" + _signed(row),
            "where": row["predicate"] or "",
            "tags": ", ".join(row["tags"]),
            "writer": row["writer"] or "",
        }
        for row in rows
    ]
    print_table(pa.Table.from_pylist(shown), as_json=False)


def _signed(row: dict[str, Any]) -> str:
    """Added, changed and removed fragments, as `` (+2 ~1 -3)``."""
    signs = zip("+~-", _CHANGES[:3], strict=True)
    parts = [f"{sign}{row[key]}" for sign, key in signs if row[key]]
    return f" ({' '.join(parts)})" if parts else ""


@click.command("diff")
@click.argument("path")
@click.argument("first", metavar="V1", type=int)
@click.argument("second", metavar="V2", type=int)
@click.option("--branch", help="Branch to read. Default: main.")
@storage_option
@json_option
@reports_errors
def diff_command(path: str, first: int, second: int, as_json: bool, **which: Any) -> None:
    """Show the differences between two versions: columns, rows, fragments, indices, configuration.

    \b
    lance-sql diff sales.lance 3 5

    Rows are compared by fragment: a row that moved to another fragment, such as an updated row, counts
    as removed and as added.
    """
    before, after = (open_dataset(path, version, **which) for version in (first, second))
    differences = _differences(before.snapshot, after.snapshot)
    if as_json:
        from lance_sql.display.output import print_json

        print_json(differences)
    else:
        click.echo("\n".join(map(legible_line, _described(differences))))


def _differences(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    old, new = ({fragment.id: fragment for fragment in side.fragments} for side in (before, after))
    kept = [(old[number], new[number]) for number in new if number in old]
    deleted = sum(max(before.live_rows(was) - after.live_rows(now), 0) for was, now in kept)
    added = [number for number in new if number not in old]
    removed = [number for number in old if number not in new]
    return {
        "from": before.version,
        "to": after.version,
        "rows": {
            "from": before.num_rows,
            "to": after.num_rows,
            "added": sum(after.live_rows(new[number]) for number in added),
            "removed": sum(before.live_rows(old[number]) for number in removed) + deleted,
        },
        "columns": _changes(
            _types(before),
            _types(after),
        ),
        "fragments": {
            "added": added,
            "removed": removed,
            "changed": [now.id for was, now in kept if was != now],
        },
        "indices": _changes(_indices(before), _indices(after)),
        "config": _changes(dict(before.manifest.config), dict(after.manifest.config)),
    }


def _types(snapshot: Snapshot) -> dict[str, str]:
    from lance_sql.types.duckdb_names import shown_types

    schema = snapshot.schema.to_arrow()
    return dict(zip(schema.names, shown_types(schema), strict=True))


def _indices(snapshot: Snapshot) -> dict[str, str]:
    from lance_engine.inspection import list_indices

    return {
        row["name"]: f"{row['kind']} on {', '.join(row['columns'])}"
        for row in list_indices(snapshot).to_pylist()
    }


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, Any]:
    return {
        "added": {key: value for key, value in after.items() if key not in before},
        "removed": {key: value for key, value in before.items() if key not in after},
        "changed": {
            key: {"from": before[key], "to": value}
            for key, value in after.items()
            if key in before and before[key] != value
        },
    }


def _described(diff: dict[str, Any]) -> list[str]:
    rows = diff["rows"]
    lines = [
        f"version {diff['from']} to {diff['to']}",
        f"rows       {rows['from']:,} to {rows['to']:,}: +{rows['added']:,} -{rows['removed']:,}",
    ]
    fragments = diff["fragments"]
    counts = [
        f"{sign}{len(fragments[kind])}"
        for sign, kind in (("+", "added"), ("~", "changed"), ("-", "removed"))
        if fragments[kind]
    ]
    lines.append(f"fragments  {' '.join(counts) or 'the same'}")
    for part in ("columns", "indices", "config"):
        changes = diff[part]
        details = [f"+ {key} {value}" for key, value in changes["added"].items()]
        details += [f"~ {key} {value['from']} -> {value['to']}" for key, value in changes["changed"].items()]
        details += [f"- {key} {value}" for key, value in changes["removed"].items()]
        lines += [part, *(f"  {detail}" for detail in details)] if details else [f"{part:<10} the same"]
    return lines
