"""``lance-sql info`` and ``lance-sql schema``: what a dataset is, and its columns."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, Any

import click
from lance_engine.base import legible_line, without_secrets

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import dataset_options, is_dataset, json_option, open_dataset

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion

#: Rows that `info` shows.
_SHOWN_ROWS = 5


@click.command("info")
@dataset_options
@json_option
@reports_errors
def info_command(path: str, as_json: bool, **which: Any) -> None:
    """Show what a dataset is: version, size, columns, indices, tags, and its first rows.

    \b
    lance-sql info sales.lance
    lance-sql sales.lance
    lance-sql warehouse/

    If PATH is a directory of datasets, show one line for each dataset.
    """
    inside = [] if is_dataset(path) else sorted(glob.glob("*.lance", root_dir=path))
    if inside and all(value is None for name, value in which.items() if name != "storage_options"):
        _list_datasets(path, inside, as_json)
        return
    dataset = open_dataset(path, **which)
    facts = _facts(dataset)
    if as_json:
        from lance_sql.display.output import print_json

        print_json(facts | {"columns": _columns(dataset).to_pylist()})
        return
    from lance_sql.display.amounts import counted, in_bytes
    from lance_sql.display.tables import aligned, text_table

    click.echo(click.style(legible_line(without_secrets(facts["uri"])), bold=True))
    lines = [
        ["version", _version(facts)],
        ["rows", f"{facts['rows']:,} in {counted(facts['fragments'], 'fragment')}"],
        ["size", "unknown" if facts["bytes"] is None else in_bytes(facts["bytes"])],
        ["format", facts["storage_version"] or "unknown"],
    ]
    lines += [[name, ", ".join(facts[name])] for name in ("indices", "tags", "branches") if facts[name]]
    click.echo("\n".join(aligned(lines)))
    click.echo()
    click.echo(
        "\n".join(aligned([[f"{row['column']}", _type(row)] for row in _columns(dataset).to_pylist()]))
    )
    if facts["rows"]:
        click.echo()
        click.echo(text_table(dataset.scan(limit=_SHOWN_ROWS).to_table(), _SHOWN_ROWS))


def _list_datasets(directory: str, names: list[str], as_json: bool) -> None:
    """One line per dataset; what cannot be read has the error instead of sizes."""
    from lance_engine.errors import LanceError

    from lance_sql.display.amounts import counted, in_bytes
    from lance_sql.display.output import print_json
    from lance_sql.display.tables import aligned

    listed: list[dict[str, Any]] = []
    for name in names:
        try:
            facts = _facts(open_dataset(os.path.join(directory, name)))
        except LanceError as error:
            listed.append({"name": name, "error": str(error)})
        else:
            listed.append({"name": name, **{key: facts[key] for key in ("version", "rows", "bytes")}})
    if as_json:
        print_json(listed)
        return
    click.echo(click.style(legible_line(f"{directory}: {counted(len(names), 'dataset')}"), bold=True))
    lines = [["dataset", "version", "rows", "size"]]
    for facts in listed:
        sizes = [
            str(facts.get("version", "-")),
            f"{facts['rows']:,}" if "rows" in facts else "-",
            in_bytes(facts["bytes"]) if facts.get("bytes") is not None else "-",
        ]
        lines.append([legible_line(facts["name"]), *sizes])
    click.echo("\n".join(aligned(lines, right=(1, 2, 3))))
    for facts in listed:
        if "error" in facts:
            click.echo(legible_line(f"{facts['name']}: {facts['error']}"), err=True)


@click.command("schema")
@dataset_options
@json_option
@reports_errors
def schema_command(path: str, as_json: bool, **which: Any) -> None:
    """Show the columns of a dataset with their types, as DESCRIBE names them, and as Arrow does.

    \b
    lance-sql schema sales.lance
    lance-sql schema sales.lance --version 3 --json
    """
    from lance_sql.display.output import print_table

    print_table(_columns(open_dataset(path, **which)), as_json=as_json)


def _columns(dataset: DatasetVersion) -> pa.Table:
    import pyarrow as pa

    from lance_sql.types.duckdb_names import shown_types

    fields = list(dataset.schema)
    return pa.table(
        {
            "column": [field.name for field in fields],
            "type": shown_types(dataset.schema),
            "nullable": pa.array([field.nullable for field in fields], pa.bool_()),
            "arrow": [str(field.type) for field in fields],
        }
    )


def _facts(dataset: DatasetVersion) -> dict[str, Any]:
    inspect = dataset.inspect
    sizes = inspect.fragments()["bytes"].to_pylist()
    refs = inspect.refs().to_pylist()
    named = {
        kind: [f"{ref['name']} (version {ref['version']})" for ref in refs if ref["kind"] == kind]
        for kind in ("tag", "branch")
    }
    return {
        "uri": dataset.uri,
        "version": dataset.version,
        "branch": dataset.branch,
        "rows": dataset.count_rows(),
        "fragments": len(sizes),
        "bytes": None if None in sizes else sum(sizes),
        "storage_version": dataset.snapshot.manifest.storage_version,
        "indices": [
            f"{index['name']} ({index['kind']} on {', '.join(index['columns'])})"
            for index in inspect.indices().to_pylist()
        ],
        "tags": named["tag"],
        "branches": named["branch"],
    }


def _version(facts: dict[str, Any]) -> str:
    return f"{facts['version']}" + (f" of branch {facts['branch']}" if facts["branch"] else "")


def _type(row: dict[str, Any]) -> str:
    return str(row["type"]) + ("" if row["nullable"] else " not null")
