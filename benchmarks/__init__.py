"""Times of lance-sql next to those of Parquet, for `make bench` and `make bench-spark`."""
