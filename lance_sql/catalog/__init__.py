"""From the names in a statement to datasets, and from datasets to the names that an engine knows."""
