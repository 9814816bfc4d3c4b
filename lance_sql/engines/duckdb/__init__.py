"""Lance datasets in DuckDB."""
