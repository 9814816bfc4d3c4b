"""Searches in statements: functions in FROM, and rows in the order of a distance."""
