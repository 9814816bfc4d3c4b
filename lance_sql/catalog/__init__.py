"""Resolves names in a statement to datasets, and registers datasets under names in an engine."""
