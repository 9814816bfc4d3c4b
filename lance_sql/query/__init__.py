"""The SQL front door: finding Lance tables in a statement, sessions, results, explanations."""
