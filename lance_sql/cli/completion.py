"""``lance-sql completion``: shell completion for commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a shell completion script.

    \b
    lance-sql completion bash >> ~/.bashrc
    lance-sql completion fish > ~/.config/fish/completions/lance-sql.fish
    """
    from lance_sql.cli.app import app

    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(app, {}, "lance-sql", "_LANCE_SQL_COMPLETE").source())
