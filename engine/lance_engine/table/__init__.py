"""Versions of a dataset: snapshots, commits and their conflicts, row ids, deletions."""
