"""Finding rows by nearness instead of by conditions."""
