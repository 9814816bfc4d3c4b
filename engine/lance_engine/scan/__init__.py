"""Reading rows: scans and look-ups by row id."""
