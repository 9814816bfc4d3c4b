"""SQL statements that change, describe or maintain datasets."""
