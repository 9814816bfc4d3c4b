"""A dataset as one page for a browser: what it consists of, and what filters can skip."""
