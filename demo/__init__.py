"""The tour of `make demo`: TPC-H written by Spark, queried by three engines, checked against Parquet."""
