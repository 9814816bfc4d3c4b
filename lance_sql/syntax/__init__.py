"""The syntax tree of a statement, bound to datasets and columns."""
