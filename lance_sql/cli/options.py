"""Options shared by several commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

Command = TypeVar("Command", bound=Callable[..., Any])


def pairs(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Parse ``key=value`` strings into a dictionary."""
    pairs = {}
    for text in values:
        key, separator, value = text.partition("=")
        if not separator or not key:
            # The value is left out: it may be a secret.
            raise click.BadParameter("expected KEY=VALUE", ctx, parameter)
        pairs[key.strip()] = value.strip()
    return pairs


def _storage_options(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    allowed: dict[str, str] = ctx.meta.get(_ALLOWED, {})
    return pairs(ctx, parameter, values) | allowed


def _allow_external(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> None:
    from lance_engine.io import ALLOW_EXTERNAL, access_of

    if values:
        options = {ALLOW_EXTERNAL: ",".join(values)}
        try:
            access_of(options)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, parameter) from None
        ctx.meta[_ALLOWED] = options


_ALLOWED = "lance_sql.allow_external"


def storage_option(command: Command) -> Command:
    """Options for storage access and for external locations; a command gets both as `storage_options`."""
    for option in (
        click.option(
            "--allow-external",
            multiple=True,
            callback=_allow_external,
            expose_value=False,
            is_eager=True,  # what follows uses it
            metavar="PLACE",
            help="Location outside the dataset that it may read from, or all, same-store (default), none. "
            "Repeatable.",
        ),
        click.option(
            "--storage-option",
            "storage_options",
            multiple=True,
            callback=_storage_options,
            metavar="KEY=VALUE",
            help="Object store option, such as region=eu-west-1. Repeatable.",
        ),
    ):
        command = option(command)
    return command


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes_progress = click.option(
    "--progress/--no-progress", default=None, help="Show a progress bar. Default: only on a terminal."
)


def dataset_options(command: Command) -> Command:
    """PATH and the version to read."""
    for option in (
        storage_option,
        click.option("--branch", help="Branch to read. Default: main."),
        click.option("--tag", help="Tag to read."),
        click.option("--at", "--version", "version", type=int, help="Version to read. Default: latest."),
        click.argument("path"),
    ):
        command = option(command)
    return command


def directory_of(place: str) -> str:
    """The directory whose datasets are tables: `place`, or the one that the dataset `place` is in."""
    return os.path.dirname(place.rstrip("/")) or "." if is_dataset(place) else place


def is_dataset(path: str) -> bool:
    """Whether `path` is that of a dataset, not of a directory of datasets."""
    path = path.rstrip("/")
    return path.endswith(".lance") or os.path.isdir(os.path.join(path, "_versions"))


def open_dataset(
    path: str,
    version: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DatasetVersion:
    """Open the dataset selected by the options of `dataset_options`."""
    from lance_engine.dataset import DatasetVersion

    return DatasetVersion.open(path, version, tag=tag, branch=branch, storage_options=storage_options or None)
