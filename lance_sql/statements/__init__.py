"""SQL statements that change datasets, describe them or keep them in shape."""
