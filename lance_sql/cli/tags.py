"""``lance-sql tag``: names for versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from lance_engine.base import legible_line

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import json_option, open_dataset, storage_option


@click.group("tag")
def tag_command() -> None:
    """Create, move, delete and list tags, which are names for versions.

    \b
    lance-sql tag create sales.lance checked --at 3
    lance-sql tag list sales.lance
    """


def _named(command: Any) -> Any:
    """PATH, NAME and the version to tag."""
    for option in (
        json_option,
        storage_option,
        click.option("--branch", help="Branch of the version. Default: main."),
        click.option("--at", "version", type=int, help="Version to tag. Default: latest."),
        click.argument("name"),
        click.argument("path"),
    ):
        command = option(command)
    return command


@tag_command.command("create")
@_named
@reports_errors
def create(path: str, name: str, as_json: bool, **which: Any) -> None:
    """Create a tag."""
    _tell(open_dataset(path, **which).tags.create(name), as_json)


@tag_command.command("update")
@_named
@reports_errors
def update(path: str, name: str, as_json: bool, **which: Any) -> None:
    """Move a tag to another version."""
    _tell(open_dataset(path, **which).tags.update(name), as_json)


@tag_command.command("delete")
@click.argument("path")
@click.argument("name")
@storage_option
@json_option
@reports_errors
def delete(path: str, name: str, storage_options: dict[str, str], as_json: bool) -> None:
    """Delete a tag. Its version is kept until cleanup removes it."""
    tags = open_dataset(path, storage_options=storage_options).tags
    tag = tags.get(name)
    tags.delete(name)
    _tell(tag, as_json, "was")


@tag_command.command("list")
@click.argument("path")
@storage_option
@json_option
@reports_errors
def list_tags(path: str, storage_options: dict[str, str], as_json: bool) -> None:
    """List the tags."""
    from lance_sql.catalog.metadata import metadata_table
    from lance_sql.display.output import print_table
    from lance_sql.text.metadata_tables import TAGS

    dataset = open_dataset(path, storage_options=storage_options)
    print_table(metadata_table(dataset, TAGS), as_json=as_json)


def _tell(tag: Any, as_json: bool, verb: str = "is") -> None:
    if as_json:
        from lance_sql.display.output import print_json

        print_json(asdict(tag))
    else:
        branch = f" of branch {tag.branch}" if tag.branch else ""
        click.echo(legible_line(f"{tag.name} {verb} version {tag.version}{branch}"))
