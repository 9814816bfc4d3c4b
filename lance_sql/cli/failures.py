"""Errors of commands: one line on stderr, and the exit code."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar, cast

import click
from lance_engine.errors import LanceError

from lance_sql.display.errors import show_error

Command = TypeVar("Command", bound=Callable[..., Any])


class Exit(IntEnum):
    """Exit codes."""

    #: success
    OK = 0
    #: the command failed; the reason is on standard error
    ERROR = 1
    #: the command line itself is wrong
    USAGE = 2
    #: the command ran and found problems: `verify`, `health`
    FOUND = 3
    #: ended by Ctrl-C
    INTERRUPTED = 130


def reports_errors(command: Command) -> Command:
    """Add the option ``--debug`` to `command`. Without it, errors are one line instead of a traceback."""

    @click.option("--debug", is_flag=True, help="Show the traceback of an error.")
    @functools.wraps(command)
    def run(*args: Any, debug: bool, **options: Any) -> None:
        try:
            command(*args, **options)
        except BrokenPipeError:  # the reader of a pipe, such as `head`, has closed it
            # Discard what is left in the buffer.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(Exit.OK) from None
        except KeyboardInterrupt:
            if debug:
                raise
            click.echo("interrupted", err=True)
            raise click.exceptions.Exit(Exit.INTERRUPTED) from None
        except (LanceError, OSError, ValueError) as error:  # a ValueError means an invalid argument
            if debug:
                raise
            show_error(error)
            raise click.exceptions.Exit(Exit.ERROR) from None

    return cast(Command, run)
