"""The filter tree: its readers (`parse_sql`, `from_arrow`) and its evaluators over rows and statistics."""
