"""One map of types between Arrow, Lance, DuckDB, DataFusion, Spark and Python."""
