"""Times of lance-sql beside those of Parquet, for `make bench` and `make bench-spark`."""
