"""The Lance format engine: files, tables, scans and commits, without any SQL engine."""

__version__ = "0.1.0"
