"""The command ``lance-sql``: a group of commands whose modules are imported when they are called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from lance_sql.cli.options import directory_of

#: command -> the module that defines it
_COMMANDS = {
    "query": "query",
    "shell": "shell",
    "info": "summary",
    "schema": "summary",
    "inspect": "inspection",
    "history": "history",
    "diff": "history",
    "head": "rows",
    "take": "rows",
    "nearest": "rows",
    "search": "rows",
    "convert": "convert",
    "compact": "upkeep",
    "cleanup": "upkeep",
    "index": "indices",
    "verify": "upkeep",
    "health": "upkeep",
    "tag": "tags",
    "completion": "completion",
}

#: what other programs call a command -> the command, or what to write
_OTHER_COMMANDS = {
    "count": "lance-sql \"SELECT count(*) FROM 'sales.lance'\"",
    "describe": "lance-sql schema",
    "export": "lance-sql convert",
    "import": "lance-sql convert",
    "log": "lance-sql history",
    "optimize": "lance-sql compact and lance-sql index optimize",
    "sql": "lance-sql query",
    "vacuum": "lance-sql cleanup",
    "versions": "lance-sql history",
}

#: Options of the group itself. Anything else that is not a command is a query.
_GROUP_OPTIONS = ("--help", "--version")
_FORMAT_OPTIONS = {f"-{name}": ("--format", name) for name in ("csv", "json", "markdown", "table")}


class Commands(click.Group):
    """``lance-sql "SELECT 1"`` means ``lance-sql query "SELECT 1"``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"lance_sql.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A statement on standard input needs no argument.
        if ctx.resilient_parsing:  # words are being completed
            pass
        elif not args and not sys.stdin.isatty():
            args = ["query", "-"]
        elif args and args[0] not in _COMMANDS and args[0] not in _GROUP_OPTIONS:
            args = self._with_command(ctx, args)
        return super().parse_args(ctx, args)

    def _with_command(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments with the command that they mean; a place and a statement are as in ``duckdb``."""
        if not _is_place(args[0]):
            _refuse_misspelt(ctx, args)
            args = ["query", *args]
        elif any(" " in word for word in args[1:]):
            args = ["query", "--directory", directory_of(args[0]), *args[1:]]
        else:
            return ["info", *args]
        # -csv is what other shells call it
        return [part for word in args for part in _FORMAT_OPTIONS.get(word, (word,))]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _legible_mistakes():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _legible_mistakes():
            return super().invoke(ctx)


@contextmanager
def _legible_mistakes() -> Iterator[None]:
    """Arguments may be file names chosen by others: control characters in messages are escaped."""
    try:
        yield
    except click.ClickException as error:
        from lance_engine.base import legible_text

        vars(error)["message"] = legible_text(error.message)  # which click declares as final
        raise


def _is_place(word: str) -> bool:
    """Whether `word` is the path of a dataset or directory, not a statement."""
    if os.path.isdir(word):
        return True
    if any(character.isspace() for character in word.strip()):
        return False
    return word.rstrip("/").endswith(".lance") or word.startswith(("/", "./", "../", "~/"))


def _refuse_misspelt(ctx: click.Context, args: list[str]) -> None:
    """A single word is not a statement: suggest the command that it resembles."""
    from lance_engine.base import nearest_name

    word = args[0]
    if not word.isalpha():
        return
    near = nearest_name(word, _COMMANDS, 0.7)
    if word in _OTHER_COMMANDS:
        ctx.fail(f"No such command {word!r}. Use {_OTHER_COMMANDS[word]}")
    elif near:
        ctx.fail(f"No such command {word!r}. Did you mean {near!r}?")
    elif len(args) > 1 and not args[1].startswith("-"):
        ctx.fail(f"No such command {word!r}.")


def _show_version(ctx: click.Context, _: Any, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    import importlib.metadata

    try:
        installed = importlib.metadata.version("lance-sql")
    except importlib.metadata.PackageNotFoundError:
        installed = "(not installed)"
    click.echo(f"lance-sql {installed}")
    ctx.exit()


@click.group(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes: 0 success, 1 failed (the error is on stderr), 2 wrong usage, 3 problems
found (verify, health), 130 interrupted.
""",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version)
def app() -> None:
    """Query, inspect and maintain Lance datasets.

    \b
    lance-sql "SELECT count(*) FROM 'sales.lance'"
    lance-sql -f report.sql --format csv --output report.csv
    lance-sql shell warehouse/
    lance-sql inspect sales.lance

    lance-sql "SELECT ..." is short for lance-sql query "SELECT ...",
    lance-sql warehouse/ "SELECT ..." for lance-sql query -d warehouse/ "SELECT ...",
    and lance-sql sales.lance for lance-sql info sales.lance.
    """
