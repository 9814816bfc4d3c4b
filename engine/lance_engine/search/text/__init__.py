"""Full text search."""
