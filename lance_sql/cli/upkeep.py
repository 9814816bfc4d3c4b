"""``lance-sql compact``, ``cleanup``, ``verify`` and ``health``."""

from __future__ import annotations

import datetime
import shlex
from dataclasses import asdict
from typing import Any

import click
from lance_engine.errors import InvalidArgumentError

from lance_sql.cli.failures import Exit, reports_errors
from lance_sql.cli.options import dataset_options, json_option, open_dataset, storage_option, yes_progress

#: The commands that call methods of a dataset.
_COMMANDS = {"compact": "compact", "cleanup": "cleanup", "optimize_indices": "index optimize"}


class Span(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """``7d``, ``12h``, ``30m``, ``2w`` or ``45s``."""

    name = "SPAN"

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime.timedelta:
        if isinstance(value, datetime.timedelta):
            return value
        from lance_engine.table import duration

        try:
            return duration(str(value))
        except InvalidArgumentError:
            self.fail(
                f"invalid duration {value!r}: use a number and a unit, such as 7d, 12h, 30m or 2w", param, ctx
            )


@click.command("compact")
@click.argument("path")
@click.option("--target-rows", type=click.IntRange(min=1), help="Target number of rows per fragment.")
@click.option(
    "--deleted-share",
    type=click.FloatRange(0, 1),
    help="Rewrite fragments with a larger share of deleted rows than this.",
)
@click.option("--branch", help="Branch to change. Default: main.")
@storage_option
@yes_progress
@json_option
@reports_errors
def compact_command(
    path: str,
    target_rows: int | None,
    deleted_share: float | None,
    progress: bool | None,
    as_json: bool,
    **which: Any,
) -> None:
    """Merge small fragments and remove deleted rows.

    \b
    lance-sql compact sales.lance
    """
    from lance_sql.display.output import print_json
    from lance_sql.progress import bar

    dataset = open_dataset(path, **which)
    options: dict[str, Any] = {"target_rows": target_rows, "deleted_share": deleted_share}
    with bar(progress) as told:
        changed = dataset.compact(
            progress=told, **{key: value for key, value in options.items() if value is not None}
        )
    report = {
        "version": changed.version,
        "committed": changed.version != dataset.version,
        "fragments_before": len(dataset.snapshot.fragments),
        "fragments_after": len(changed.snapshot.fragments),
        "rows": changed.count_rows(),
    }
    if as_json:
        print_json(report)
    elif report["committed"]:
        click.echo(
            f"version {report['version']}: {report['fragments_before']} fragments became "
            f"{report['fragments_after']}"
        )
    else:
        click.echo("nothing to compact")


@click.command("cleanup")
@click.argument("path")
@click.option("--older-than", type=Span(), default="7d", help="Remove versions older than this. Default: 7d.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed without removing it.")
@click.option(
    "--delete-unverified",
    is_flag=True,
    help="Also remove recent files that no version references. No writer may be running.",
)
@click.option("--branch", help="Branch to change. Default: main.")
@storage_option
@yes_progress
@json_option
@reports_errors
def cleanup_command(
    path: str,
    older_than: datetime.timedelta,
    dry_run: bool,
    delete_unverified: bool,
    progress: bool | None,
    as_json: bool,
    **which: Any,
) -> None:
    """Remove old versions and the files that only they use. The latest and all tagged versions are kept.

    \b
    lance-sql cleanup sales.lance --older-than 30d --dry-run
    """
    from lance_engine.base import legible_line

    from lance_sql.display.amounts import counted, in_bytes
    from lance_sql.display.output import print_json
    from lance_sql.progress import bar

    dataset = open_dataset(path, **which)
    with bar(progress) as told:
        report = dataset.cleanup(
            older_than, dry_run=dry_run, delete_unverified=delete_unverified, progress=told
        )
    if as_json:
        print_json(asdict(report))
        return
    files = report.data_files + report.deletion_files + report.transaction_files + report.index_files
    verb = "would remove" if dry_run else "removed"
    click.echo(
        f"{verb} {counted(len(report.versions), 'version')}, {counted(files, 'file')}, "
        f"{in_bytes(report.bytes_removed)}"
    )
    for reference in report.damaged_references:
        click.echo(
            f"every version is kept: {legible_line(reference)} is damaged, and may name any of them", err=True
        )


@click.command("verify")
@dataset_options
@click.option("--values", is_flag=True, help="Also decode all values.")
@json_option
@reports_errors
def verify_command(path: str, values: bool, as_json: bool, **which: Any) -> None:
    """Check the integrity of a dataset: files, sizes, metadata, deletions, row ids, indices.

    \b
    lance-sql verify sales.lance --values

    Exits with 3 if there are problems, otherwise with 0.
    """
    from lance_sql.display.output import print_table

    findings = open_dataset(path, **which).verify(values=values)
    if as_json or findings.num_rows:
        print_table(findings, as_json=as_json)
    else:
        click.echo("no problems found")
    if findings.num_rows:
        raise click.exceptions.Exit(Exit.FOUND)


@click.command("health")
@dataset_options
@click.option(
    "--fail-on",
    type=click.Choice(["problems", "attention", "never"]),
    default="problems",
    help="When to exit with 3: on problems, such as missing or truncated files (default), also on what needs "
    "attention, such as small fragments, or never.",
)
@json_option
@reports_errors
def health_command(path: str, fail_on: str, as_json: bool, **which: Any) -> None:
    """Show what slows a dataset down or wastes space, and how to fix it.

    \b
    lance-sql health sales.lance
    lance-sql health sales.lance --fail-on attention

    Problems are what verify finds without --values.
    """
    import pyarrow as pa

    from lance_sql.display.amounts import counted
    from lance_sql.display.output import print_table

    dataset = open_dataset(path, **which)
    measures = dataset.health()
    calls = measures["command"].to_pylist()
    commands = pa.array([call and _mending(call, path, which.get("branch")) for call in calls], pa.string())
    place = measures.schema.get_field_index("command")
    measures = measures.set_column(place, measures.schema.field(place), commands)
    print_table(measures, as_json=as_json)
    attention = any(measures["attention"].to_pylist())
    problems = 0 if fail_on == "never" else dataset.verify().num_rows
    if problems:
        count = counted(problems, "problem")
        click.echo(f"{count} found: lance-sql verify {shlex.quote(path)} lists them", err=True)
    if problems or (fail_on == "attention" and attention):
        raise click.exceptions.Exit(Exit.FOUND)


def _mending(call: str, path: str, branch: str | None) -> str:
    """The shell command for a call that `Dataset.health` recommends."""
    command = _COMMANDS[call.removeprefix("ds.").partition("(")[0]]
    on_branch = f" --branch {shlex.quote(branch)}" if branch else ""
    return f"lance-sql {command} {shlex.quote(path)}{on_branch}"
