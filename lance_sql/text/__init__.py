"""Parsing of SQL texts: tokens, statements of a script, references to datasets."""
