"""The Lance format engine: files, tables, scans and commits, without any SQL engine."""
