"""Errors on a terminal."""

from __future__ import annotations

import os
import sys

import click
from lance_engine.base import legible_text


def show_error(error: BaseException) -> None:
    """``error: what, where. What to do`` on standard error; the word is red on a terminal."""
    coloured = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    word = click.style("error:", fg="red", bold=True) if coloured else "error:"
    click.echo(f"{word} {legible_text(str(error))}", err=True, color=coloured)
