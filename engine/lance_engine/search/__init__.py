"""Finding rows by similarity instead of by conditions."""
