"""Output for people: amounts with units, rows as tables, errors in one line."""
