"""The command line: ``lance-sql "SELECT ..."`` and ``lance-sql inspect PATH``."""

from __future__ import annotations


def main() -> None:
    """Run the command line with the arguments of the process."""
    from lance_sql.cli.app import app

    app(prog_name="lance-sql")
