"""``lance-sql index``: create, drop, list and optimize indices."""

from __future__ import annotations

from typing import Any

import click

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import (
    dataset_options,
    json_option,
    open_dataset,
    pairs,
    storage_option,
    yes_progress,
)

_branch = click.option("--branch", help="Branch to change. Default: main.")


@click.group("index")
def index_command() -> None:
    """Create, drop, list and optimize indices.

    \b
    lance-sql index create sales.lance price --kind zonemap
    lance-sql index list sales.lance
    """


@index_command.command("create")
@click.argument("path")
@click.argument("column")
@click.option(
    "--kind",
    default="btree",
    help="Index type: btree (default), bitmap, zonemap, bloomfilter; for lists label_list; for parts of "
    "texts ngram, for words in texts inverted; for vectors ivf_flat, ivf_pq, ivf_sq, ivf_hnsw_flat, "
    "ivf_hnsw_sq.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Index option, such as num_partitions=64 or metric=cosine. Repeatable.",
)
@click.option("--name", help="Index name. Default: COLUMN_idx.")
@click.option("--replace", is_flag=True, help="Replace an existing index with the same name.")
@_branch
@storage_option
@yes_progress
@json_option
@reports_errors
def create(
    path: str,
    column: str,
    kind: str,
    options: dict[str, str],
    name: str | None,
    replace: bool,
    progress: bool | None,
    as_json: bool,
    **which: Any,
) -> None:
    """Build an index on a column."""
    from lance_sql.progress import bar
    from lance_sql.statements.options import constant

    with bar(progress) as told:
        values: dict[str, Any] = {key: constant(value) for key, value in options.items()}
        try:
            changed = open_dataset(path, **which).create_index(
                column, kind, name=name, replace=replace, progress=told, **values
            )
        except TypeError as error:  # an option that this kind does not have
            raise click.BadParameter(str(error), param_hint="--option") from error
    _tell(changed.version, f"index {name or column + '_idx'} created", as_json)


@index_command.command("drop")
@click.argument("path")
@click.argument("name")
@_branch
@storage_option
@json_option
@reports_errors
def drop(path: str, name: str, as_json: bool, **which: Any) -> None:
    """Remove an index."""
    _tell(open_dataset(path, **which).drop_index(name).version, f"index {name} dropped", as_json)


@index_command.command("list")
@dataset_options
@json_option
@reports_errors
def list_indices(path: str, as_json: bool, **which: Any) -> None:
    """List the indices and the rows they cover."""
    from lance_sql.display.output import print_table

    print_table(open_dataset(path, **which).inspect.indices(), as_json=as_json)


@index_command.command("optimize")
@click.argument("path")
@_branch
@storage_option
@yes_progress
@json_option
@reports_errors
def optimize(path: str, progress: bool | None, as_json: bool, **which: Any) -> None:
    """Update indices to cover rows added after they were built."""
    from lance_sql.progress import bar

    with bar(progress) as told:
        changed = open_dataset(path, **which).optimize_indices(progress=told)
    _tell(changed.version, "indices are up to date", as_json)


def _tell(version: int, text: str, as_json: bool) -> None:
    if as_json:
        from lance_sql.display.output import print_json

        print_json({"version": version})
    else:
        click.echo(f"version {version}: {text}")
