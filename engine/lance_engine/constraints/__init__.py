"""Constraints of tables: which rows violate them, found before a version is committed."""
