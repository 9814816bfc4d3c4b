"""The command line: ``lance-sql "SELECT ..."``, ``lance-sql inspect PATH`` and the other commands."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line with the arguments of the process."""
    from lance_sql.cli.app import app
    from lance_sql.cli.start_up import leave_pandas_out, write_any_text

    write_any_text()
    leave_pandas_out()
    try:
        app(prog_name="lance-sql")
    finally:
        gc.freeze()  # nothing is garbage any more: the interpreter looks for it two more times before it ends
