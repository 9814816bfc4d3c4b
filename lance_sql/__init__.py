"""SQL over Lance datasets: DuckDB, DataFusion and Spark."""
