"""``python -m lance_sql.cli``."""

from lance_sql.cli import main

main()
